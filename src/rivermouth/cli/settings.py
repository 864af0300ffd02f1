"""``validate`` and ``config``: commands that need the configuration file alone.

Also the arguments that several commands share.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli import completing

if TYPE_CHECKING:
    from rivermouth.config import Config, Secrets
    from rivermouth.config.loader import Unsaid

ConfigFile = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The configuration file (YAML).")
]
Select = Annotated[
    str,
    typer.Option(
        "--select",
        metavar="a,b",
        help="Only these pipelines; default: all.",
        autocompletion=completing.selection,
    ),
]
PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="A pipeline of the file.", autocompletion=completing.pipelines
    ),
]
TopicName = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC", help="A topic of the cluster.", autocompletion=completing.topics
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]

config = typer.Typer(
    help="About the configuration format.", no_args_is_help=True, rich_markup_mode=None
)


def load_config(file: Path) -> Config:
    """The configuration, or a ConfigError with every problem of the file.

    Columns that it does not name are asked of the tables and of the registry.
    """
    from rivermouth.config import load

    return load(file, columns_of=columns_of)


def columns_of(unsaid: Unsaid) -> str | None:
    """See ``operate.columns``, which most files do without."""
    from rivermouth.operate.columns import columns_of

    return columns_of(unsaid, known_secrets)


def load_local(file: Path, remedy: str = "") -> Config:
    """The configuration for a command that starts Spark on this machine.

    Raises ConfigError, also if the tables are in a catalog. ``remedy`` is what to do then, where
    no job of the bundle does it.
    """
    config = load_config(file)
    _ = config.files_or(remedy) if remedy else config.files
    return config


def known_secrets() -> Secrets:
    """Reads the secrets that a configuration names, in the way that works in this process."""
    from rivermouth.databricks.workspace import secrets_here

    return secrets_here()


def validate(file: ConfigFile) -> None:
    """Check a configuration file; reads no topic."""
    from rivermouth.local.commands import typed

    config = load_config(file)
    pipelines = config.pipelines
    names = ", ".join(pipelines)
    typer.echo(f"OK: {file} describes {len(pipelines)} pipeline(s): {names}")
    if any("start" in each.source.model_fields_set for each in pipelines.values()):
        from rivermouth.operate.facts import idle_starts
        from rivermouth.protocol.starts import OVER

        for name in idle_starts(config, known_secrets()):
            typer.echo(f"{name}: {OVER}")
    typer.echo(f"Next: {typed('doctor', file)}")


@config.callback()
def about() -> None:
    """About the configuration format."""


@config.command("schema")
def schema() -> None:
    """Print the JSON Schema of configuration files, for editors."""
    import json

    from rivermouth.config import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
