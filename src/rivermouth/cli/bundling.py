"""``bundle``: writes a project that you deploy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="New or empty; its name is the project's name.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Your configuration; default: an example.")
]

bundle = typer.Typer(
    help="About Databricks asset bundles.", no_args_is_help=True, rich_markup_mode=None
)


@bundle.callback()
def about() -> None:
    """About Databricks asset bundles."""


@bundle.command("init")
def init(folder: Folder, config: ConfigOption = None) -> None:
    """Write a project around a configuration: bundle, jobs, a test, a CI workflow."""
    from rivermouth.databricks.project import scaffold
    from rivermouth.local.commands import quoted

    files = scaffold(folder, config)
    for each in files:
        typer.echo(f"  {folder / each}")
    typer.echo(f"OK: {len(files)} files. Next: cd {quoted(folder)} && make test")
