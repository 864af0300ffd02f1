"""``status``, ``verify``, ``sql`` and ``offsets``: what the tables say, without a JVM."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    Select,
    known_secrets,
    load_config,
    selected,
)

if TYPE_CHECKING:
    from rivermouth.verify import PipelineProof, Verification

NOT_OK = 3

Statement = Annotated[str, typer.Argument(metavar="STATEMENT", help='Such as "SELECT …".')]
offsets = typer.Typer(help="About the offsets table.", no_args_is_help=True, rich_markup_mode=None)


def status(file: ConfigFile, json: AsJson = False) -> None:
    """Where every pipeline stands: state, lag, position. Starts no JVM."""
    from rivermouth.cli.render import as_json
    from rivermouth.cli.status_table import render
    from rivermouth.operate.status import status as ask

    found = ask(load_config(file), secrets=known_secrets())
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(render(found))


def verify(file: ConfigFile, select: Select = "", json: AsJson = False) -> None:
    """Prove from Kafka that no record is missing or twice.

    Reads Kafka and the tables again, without the code that wrote. Exit code 3 if not ok.
    """
    config = load_config(file)
    names = selected(config, select)
    from rivermouth.cli.render import as_json
    from rivermouth.verify import verify as prove

    progress = _progress if sys.stderr.isatty() else None
    found = prove(config, names, progress, secrets=known_secrets())
    if json:
        as_json(found.as_dict())
    else:
        show(found)
    raise typer.Exit(0 if found.ok else NOT_OK)


def sql(file: ConfigFile, statement: Statement, json: AsJson = False) -> None:
    """Query the tables, quarantine and offsets by name.

    Such as bronze.bids, bronze.bids_quarantine, rivermouth.offsets. Starts no JVM.
    """
    from rivermouth.cli.render import as_json
    from rivermouth.operate.sql import query, render

    found = query(load_config(file), statement)
    if json:
        as_json(found.as_dicts())
    else:
        typer.echo(render(found))


@offsets.callback()
def about() -> None:
    """About the offsets table."""


@offsets.command("rebuild")
def rebuild(file: ConfigFile) -> None:
    """Write the offsets table anew from the logs of the tables."""
    from rivermouth.operate.rebuild import rebuild_offsets

    for name, entries in rebuild_offsets(load_config(file)).items():
        typer.echo(f"{name}: {entries:,} entries")
    typer.echo(f"OK. Next: rivermouth verify {file}")


def _progress(pipeline: str, done: int, total: int) -> None:
    """One line on the terminal that changes; gone at the end."""
    share = f"{100 * done // total} %" if total else ""
    sys.stderr.write(f"\r\x1b[Kverifying {pipeline} {share}" if done < total else "\r\x1b[K")
    sys.stderr.flush()


def show(found: Verification) -> None:
    """What a verification found, for people."""
    from rivermouth.cli.render import wrapped
    from rivermouth.cli.text_table import text_table

    headers = ("pipeline", "", "entries", "records", "bad", "missing", "twice", "gaps", "overlaps")
    typer.echo(text_table(headers, [_row(each) for each in found.pipelines], numbers=range(2, 9)))
    for each in found.pipelines:
        for line in each.problems:
            typer.echo(wrapped(f"{each.name}: {line}", "  ", ""))
        for line in each.unchecked:
            typer.echo(wrapped(f"{each.name}: not checked: {line}", "  ", ""))
    failed = [each.name for each in found.pipelines if not each.ok]
    if failed:
        typer.echo(f"FAILED: {', '.join(failed)}")
        return
    records = sum(each.records for each in found.pipelines)
    typer.echo(f"OK: {records:,} records read again, 0 missing, 0 duplicated")


def _row(proof: PipelineProof) -> tuple[str, ...]:
    facts = proof.as_dict()
    names = ("entries", "records", "quarantined", "missing", "duplicated", "gaps", "overlaps")
    return (proof.name, "OK" if proof.ok else "FAILED", *(f"{facts[name]:,}" for name in names))
