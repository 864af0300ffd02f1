"""``resume``: an operator accepts that commits of a pipeline were rolled back."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, known_secrets, load_local, selected


class Accept(Enum):
    """What an operator may accept."""

    RESTORE = "restore"
    RESET = "reset"


Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline that halted.")]
Accepting = Annotated[
    Accept,
    typer.Option(
        "--accept",
        help="restore: continue from the restored state. reset: the table was emptied or "
        "recreated; start again where the configuration says.",
    ),
]


def resume(file: ConfigFile, pipeline: Pipeline, accept: Accepting, json: AsJson = False) -> None:
    """Accept a RESTORE or a reset of a table.

    Writes a ledger entry that records it; the next run continues from there.
    """
    config = load_local(file)
    [name] = selected(config, pipeline.replace(",", " ") or "?")  # exactly one, by its full name
    from rivermouth.cli.outcome import accepted
    from rivermouth.cli.render import as_json, console
    from rivermouth.cli.running import require_spark, start_spark
    from rivermouth.local.scratch import scratch_root

    require_spark()
    shown = console(stderr=json)
    session = start_spark(config, shown)
    from rivermouth.local.session import ending
    from rivermouth.run.report import Silent
    from rivermouth.run.run import Run

    with ending(session):
        run = Run(config, session, scratch_root(), continuous=False, secrets=known_secrets())
        position = run.resume(name, accept.value, Silent())
    shown.print(accepted(name, accept.value, position), soft_wrap=True)
    shown.print(f"Next: rivermouth run {file}", soft_wrap=True)
    if json:
        as_json({"name": name, "accepted": accept.value, "position": position.as_nested()})
