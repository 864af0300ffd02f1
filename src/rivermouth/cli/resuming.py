"""``resume``: an operator accepts that commits of a pipeline were undone."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, known_secrets, load_local, selected

if TYPE_CHECKING:
    from rich.console import Console

    from rivermouth.protocol.offsets import Position


class Accept(Enum):
    """What an operator may accept."""

    RESTORE = "restore"
    RESET = "reset"


Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline that halted.")]
Accepting = Annotated[
    Accept,
    typer.Option(
        "--accept",
        help="restore: go on from the restored state. reset: the table was emptied or made "
        "anew, start over where the configuration says.",
    ),
]


def resume(file: ConfigFile, pipeline: Pipeline, accept: Accepting, json: AsJson = False) -> None:
    """Accept a RESTORE or a reset of a table, and go on.

    Writes a ledger entry that says so; the next run reads again from there.
    """
    config = load_local(file)
    [name] = selected(config, pipeline.replace(",", " ") or "?")  # one, by its whole name
    from rivermouth.cli.render import as_json, console
    from rivermouth.cli.running import require_spark, start_spark
    from rivermouth.local.scratch import scratch_root

    require_spark()
    shown = console(stderr=json)
    session = start_spark(shown)
    from rivermouth.run.report import Silent
    from rivermouth.run.run import Run

    try:
        run = Run(config, session, scratch_root(), continuous=False, secrets=known_secrets())
        position = run.resume(name, accept.value, Silent())
    finally:
        session.stop()
    show_accepted(shown, name, accept, position)
    shown.print(f"Next: rivermouth run {file}", soft_wrap=True)
    if json:
        as_json({"name": name, "accepted": accept.value, "position": position.as_nested()})


def show_accepted(shown: Console, name: str, accept: Accept, position: Position) -> None:
    """Where the pipeline goes on."""
    for each, offset in position.offsets.items():
        shown.print(f"{name}: {each} goes on at {offset:,}", soft_wrap=True)
    shown.print(f"OK: {accept.value} accepted", soft_wrap=True)
