"""``init`` and ``schema infer``: from samples of topics to a configuration. They start no JVM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, known_secrets
from rivermouth.errors import ConfigError, NotInferred, ScaffoldRefused

if TYPE_CHECKING:
    from rivermouth.operate.drafts import Connection
    from rivermouth.operate.infer import Inference, Tried

Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics of the cluster.")]
Name = Annotated[str, typer.Argument(metavar="TOPIC", help="A topic of the cluster.")]
Servers = Annotated[
    str,
    typer.Option(
        "--bootstrap-servers", metavar="HOST:PORT", help="Of the cluster; several with commas."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="NAME=VALUE",
        help="An option of the section kafka, such as a login; may be repeated.",
    ),
]
RegistryUrl = Annotated[
    str, typer.Option("--registry", metavar="URL", help="The schema registry, if there is one.")
]
Samples = Annotated[
    int, typer.Option("-n", min=1, metavar="N", help="Look at N records of each topic, at most.")
]
Output = Annotated[Path, typer.Option("-o", metavar="FILE", help="The file to write.")]
Warehouse = Annotated[
    str, typer.Option("--warehouse", metavar="PLACE", help="A folder, or the address of a bucket.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]
KeyColumns = Annotated[
    str, typer.Option("--key", metavar="a,b", help="With --mode upsert: the columns of the key.")
]


class Mode(str, Enum):
    """What the records of a topic become."""

    APPEND = "append"
    UPSERT = "upsert"


ModeChoice = Annotated[
    Mode | None,
    typer.Option(
        "--mode",
        help="A row for each record, or the newest row of each key; by default append, and upsert "
        "for change streams.",
    ),
]
schema = typer.Typer(
    help="About the columns of records.", no_args_is_help=True, rich_markup_mode=None
)
_SOME = 5


def init(
    topics: Names,
    servers: Servers = "",
    registry: RegistryUrl = "",
    options: Options = None,
    warehouse: Warehouse = "./lake",
    mode: ModeChoice = None,
    key: KeyColumns = "",
    samples: Samples = 1000,
    file: Output = Path("lake.yml"),
    force: Force = False,
) -> None:
    """Write a configuration that reads these topics.

    Looks at the first and the newest records of each topic: format, columns, keys. A topic that
    nobody can tell is left out, with the reason, and the exit code is 5. Joins no consumer group.
    """
    if key and mode is not Mode.UPSERT:
        raise ConfigError(("--key: it goes with --mode upsert",))
    if not file.parent.is_dir() or (file.exists() and not force):
        what = "the file is there" if file.exists() else "its folder is not there"
        remedy = "Write --force, or another file with -o"
        raise ScaffoldRefused(what, where=str(file), remedy=remedy)
    from rivermouth.local.commands import typed
    from rivermouth.operate.drafts import file_text
    from rivermouth.operate.infer import Inference, configured

    connection = _connection(servers, registry, options or (), warehouse)
    topics = [*dict.fromkeys(topics)]
    asked = Inference(connection, topics, samples, known_secrets())
    columns = tuple(each.strip() for each in key.split(",")) if key else ()
    found = [each for topic in topics if (each := _told(asked, topic, mode, columns)) is not None]
    if not found:
        raise typer.Exit(NotInferred.exit_code)
    drafts = [each.commented for each in found]
    configured(connection, drafts, str(file))
    head = (
        "Written by rivermouth init, from samples. It is yours to edit: docs/configuration.md has",
        f"each key. Next: {typed('validate', file)}, then {typed('run', file)}",
    )
    file.write_text(file_text(connection, drafts, head), encoding="utf-8")
    for each in found:
        _show(each)
    typer.echo(f"Wrote {file}. Next: {typed('run', file)}")
    raise typer.Exit(_SOME if len(found) < len(topics) else 0)


@schema.callback()
def about() -> None:
    """About the columns of records."""


@schema.command("infer")
def schema_infer(
    topic: Name,
    servers: Servers = "",
    registry: RegistryUrl = "",
    options: Options = None,
    samples: Samples = 1000,
    json: AsJson = False,
) -> None:
    """Print the columns that take the records of a topic.

    They are as schema has them. What else a pipeline has to say is on standard error.
    """
    from rivermouth.operate.infer import Inference
    from rivermouth.run.text import as_json

    connection = _connection(servers, registry, options or (), "./lake")
    found = Inference(connection, [topic], samples, known_secrets()).of(topic)
    if json:
        as_json(found.as_dict())
        return
    typer.echo(found.draft.schema)
    for each in found.said:
        sys.stderr.write(f"# {each}\n")


def _connection(servers: str, registry: str, options: Sequence[str], warehouse: str) -> Connection:
    """What the options say. Asks for the servers on a terminal. Raises ConfigError."""
    given: dict[str, str] = {}
    for each in options:
        name, mark, value = each.partition("=")
        if not mark or not name:
            raise ConfigError((f"-X {name}: write NAME=VALUE, as security.protocol=SASL_SSL",))
        given[name.strip()] = value.strip()
    servers = servers or given.get("bootstrap.servers", "")
    if not servers and _on_terminal():
        servers = typer.prompt("Bootstrap servers of the cluster, host:port")
    if not servers:
        raise ConfigError(("--bootstrap-servers: write host:port of the cluster",))
    from rivermouth.operate.drafts import Connection

    return Connection({"bootstrap.servers": servers, **given}, registry, warehouse)


def _told(asked: Inference, topic: str, mode: Mode | None, key: tuple[str, ...]) -> Tried | None:
    """The pipeline of a topic; None: it is left out, and the reason was said."""
    try:
        return _chosen(asked, topic, mode, key)
    except NotInferred as error:
        sys.stderr.write(f"{error}\n")
        return None


def _chosen(asked: Inference, topic: str, mode: Mode | None, key: tuple[str, ...]) -> Tried:
    """The pipeline of a topic in the mode that somebody chose. Raises NotInferred."""
    found = asked.of(topic, append=mode is Mode.APPEND)
    if mode is Mode.APPEND or found.draft.keys:
        return found
    if mode is None:
        key = _asked_key(found)
        return asked.keyed(found, key) if key else found
    proven = [each.columns for each in found.keys if each.form]
    if not key and not proven:
        remedy = "Write --key with its columns, or leave out --mode"
        raise NotInferred("no record key holds columns of it", where=topic, remedy=remedy)
    return asked.keyed(found, key or proven[0])


def _asked_key(found: Tried) -> tuple[str, ...]:
    """The key that somebody at a terminal chooses of those that records may have; none: append."""
    if not found.keys or not _on_terminal():
        return ()
    for each in found.keys:
        typer.echo(f"{found.draft.topic}: {each.evidence}")
    typer.echo("To keep the newest row of each key, name its columns; no: a row for each record")
    said = typer.prompt("Key", default="no")
    return () if said == "no" else tuple(each.strip() for each in said.split(","))


def _on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _show(found: Tried) -> None:
    from rivermouth.run.text import wrapped

    for n, each in enumerate((*found.evidence, *found.draft.notes)):
        typer.echo(wrapped(each, "    ", "  " if n else ""))
