"""``status``, ``topic``, ``verify``, ``sql``, ``offsets``: commands that read without a JVM."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    Select,
    TopicName,
    known_secrets,
    load_config,
)
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivermouth.config import Config
    from rivermouth.operate.status import Status

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
Watch = Annotated[bool, typer.Option("--watch", help="Look again and again, until interrupted.")]
Every = Annotated[
    float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often --watch looks.")
]
SendAlerts = Annotated[
    bool, typer.Option("--alert", help="Send the alerts of the file that are due.")
]
AT_ONCE = 4
"""Pipelines verified at once, at most: each needs temporary files of its own, too."""
offsets = typer.Typer(help="About the offsets table.", no_args_is_help=True, rich_markup_mode=None)


def status(
    file: ConfigFile,
    watch: Watch = False,
    every: Every = 2.0,
    alert: SendAlerts = False,
    json: AsJson = False,
) -> None:
    """Show the state, position and lag of each pipeline. Starts no JVM."""
    from rivermouth.operate.status import status as ask
    from rivermouth.run.tables import status_table
    from rivermouth.run.text import as_json, console
    from rivermouth.run.watching import watch as look_again
    from rivermouth.verification import record_states

    config, secrets = load_config(file), known_secrets()
    tell = _alarm(config) if alert else None

    def look() -> Status:
        found = ask(config, secrets=secrets, proofs=record_states(config, secrets))
        if tell is not None:
            tell(found)
        return found

    def say(found: Status) -> None:
        as_json(found.as_dict(), indent=None)

    if watch:
        look_again(look, every, console(), say if json else None)
    elif json:
        as_json(look().as_dict())
    else:
        typer.echo(status_table(look()))


def _alarm(config: Config) -> Callable[[Status], object]:
    """What sends the alerts of a configuration. Raises ConfigError where it has none."""
    from rivermouth.monitor.sending import alarm_of

    alarm = alarm_of(config, known_secrets())
    if alarm is None:
        raise ConfigError((f"{config.path}: --alert sends alerts, and the file has none",))
    return alarm.seen


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
    names = config.selected(select)
    from rivermouth.local.scratch import scratch_root
    from rivermouth.run.outcome import NOT_OK, Shares, read_since, verified
    from rivermouth.run.text import as_json
    from rivermouth.schemas.known import schemas_of
    from rivermouth.storage.lake import Lake
    from rivermouth.verification import beside_offsets
    from rivermouth.verification import verify as verify_pipelines

    found = verify_pipelines(
        config,
        names,
        Shares(sys.stderr) if sys.stderr.isatty() else None,
        secrets=known_secrets(),
        strict=strict,
        since=read_since(since, time.time()),
        proofs=beside_offsets(Lake.of(config, known_secrets())),
        record=record,
        processes=processes or _at_once(),
        schemas=schemas_of(config, known_secrets(), scratch_root()),
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
    from rivermouth.operate.sql import query
    from rivermouth.run.text import as_json, query_table

    found = query(load_config(file), statement, known_secrets())
    if json:
        as_json(found.as_dicts())
    else:
        typer.echo(query_table(found))


@offsets.callback()
def about() -> None:
    """About the offsets table."""


@offsets.command("rebuild")
def rebuild(file: ConfigFile) -> None:
    """Rebuild the offsets table from the logs of the tables."""
    from rivermouth.local.commands import typed
    from rivermouth.operate.rebuild import rebuild_offsets

    for name, entries in rebuild_offsets(load_config(file), known_secrets()).items():
        typer.echo(f"{name}: {entries:,} entries")
    typer.echo(f"OK. Next: {typed('verify', file)}")


def _at_once() -> int:
    """How many pipelines are verified at once: each needs a core and its own memory."""
    from rivermouth.local.machine import cores, memory_mb

    return max(1, min(AT_ONCE, cores(), memory_mb() // 1024))


AtTime = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Also the first offset of each partition from that time on: 2026-11-01T06:00:00Z.",
    ),
]


def topic(file: ConfigFile, name: TopicName, at: AtTime = "", json: AsJson = False) -> None:
    """Show what a topic holds, and who reads it.

    Leader, replicas and offsets of each partition; position and lag of each pipeline that reads it;
    and when retention may delete the next record that it must read. Starts no JVM.
    """
    if not name:
        raise ConfigError(("TOPIC: write the name of a topic",))
    moment = read_time(at)
    config = load_config(file)
    from rivermouth.operate.topic import topic as ask
    from rivermouth.run.tables import topic_table
    from rivermouth.run.text import as_json

    found = ask(config, name, at=moment, secrets=known_secrets())
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(topic_table(found))


def read_time(text: str) -> datetime | None:
    """The time that ``--at`` names, as in ``source.start``; None where it is empty.

    Raises ConfigError.
    """
    if not text:
        return None
    from rivermouth.config.problems import Refused
    from rivermouth.config.start import read_start

    try:
        moment = read_start(text).edge
    except Refused:
        moment = "earliest"
    if isinstance(moment, datetime):
        return moment
    form = "write a time with its zone, from 1970 on, as 2026-11-01T06:00:00Z"
    raise ConfigError((f"--at {text}: {form}",))
