"""``status``, ``verify``, ``sql`` and ``offsets``: commands that read tables without a JVM."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    Select,
    known_secrets,
    load_config,
    selected,
)

Statement = Annotated[str, typer.Argument(metavar="STATEMENT", help='For example "SELECT …".')]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="What cannot be checked is a fault too; compares every value of every row."
    ),
]
SinceWhen = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="last|TIME",
        help="Read only what was committed since the last recorded proof, or since a time: "
        "2026-11-21T06:00:00Z, or 1d for a day ago.",
    ),
]
Record = Annotated[
    bool, typer.Option("--record/--no-record", help="Record what is proved, for --since last.")
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        min=0,
        metavar="N",
        help="Verify at most N pipelines at once; 0: one per core and GB of memory, at most four.",
    ),
]
AT_ONCE = 4
"""Pipelines verified at once, at most: each needs temporary files of its own, too."""
offsets = typer.Typer(help="About the offsets table.", no_args_is_help=True, rich_markup_mode=None)


def status(file: ConfigFile, json: AsJson = False) -> None:
    """Show the state, position and lag of each pipeline. Starts no JVM."""
    from rivermouth.cli.render import as_json
    from rivermouth.cli.status_table import render
    from rivermouth.operate.status import status as ask
    from rivermouth.verify import standings

    config = load_config(file)
    found = ask(config, secrets=known_secrets(), proofs=standings(config))
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(render(found))


def verify(
    file: ConfigFile,
    select: Select = "",
    strict: Strict = False,
    since: SinceWhen = "",
    record: Record = True,
    processes: Processes = 0,
    json: AsJson = False,
) -> None:
    """Prove by Kafka that no record is missing or duplicated.

    Reads Kafka and the tables again, without the code that wrote. Exit code 3 for a fault. What
    cannot be checked is counted and named. What is proved is recorded, and status shows it.
    """
    config = load_config(file)
    names = selected(config, select)
    from rivermouth.cli.outcome import NOT_OK, verified
    from rivermouth.cli.proving import Shares, read_since
    from rivermouth.cli.render import as_json
    from rivermouth.verify import beside_offsets
    from rivermouth.verify import verify as prove

    found = prove(
        config,
        names,
        Shares(sys.stderr) if sys.stderr.isatty() else None,
        secrets=known_secrets(),
        strict=strict,
        since=read_since(since, time.time()),
        proofs=beside_offsets(config.folder),
        record=record,
        processes=processes or _at_once(),
    )
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(verified(found))
    raise typer.Exit(0 if found.ok else NOT_OK)


def sql(file: ConfigFile, statement: Statement, json: AsJson = False) -> None:
    """Query the tables, quarantine and offsets by name.

    For example bronze.bids, bronze.bids_quarantine, rivermouth.offsets. Starts no JVM.
    """
    from rivermouth.cli.query_table import render
    from rivermouth.cli.render import as_json
    from rivermouth.operate.sql import query

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
    """Rebuild the offsets table from the logs of the tables."""
    from rivermouth.local.typed import typed
    from rivermouth.operate.rebuild import rebuild_offsets

    for name, entries in rebuild_offsets(load_config(file)).items():
        typer.echo(f"{name}: {entries:,} entries")
    typer.echo(f"OK. Next: {typed('verify', file)}")


def _at_once() -> int:
    """How many pipelines are verified at once: each needs a core and its own memory."""
    from rivermouth.local.machine import cores, memory_mb

    return max(1, min(AT_ONCE, cores(), memory_mb() // 1024))
