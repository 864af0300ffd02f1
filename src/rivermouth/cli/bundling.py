"""``bundle``: a project of one's own to deploy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="New or empty; names the project.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Your configuration; else it has an example.")
]

bundle = typer.Typer(
    help="About Databricks asset bundles.", no_args_is_help=True, rich_markup_mode=None
)


@bundle.callback()
def about() -> None:
    """About Databricks asset bundles."""


@bundle.command("init")
def init(folder: Folder, config: ConfigOption = None) -> None:
    """Write a project around a configuration: bundle, jobs, a test, what CI runs."""
    from rivermouth.bundle.scaffold import scaffold

    files = scaffold(folder, config)
    for each in files:
        typer.echo(f"  {folder / each}")
    typer.echo(f"OK: {len(files)} files. Next: cd {folder} && make test")
