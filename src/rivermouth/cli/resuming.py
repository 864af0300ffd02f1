"""``resume``: an operator accepts what halted a pipeline."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, load_local, named
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.protocol.accepting import Offsets

ROLLBACKS = ("restore", "reset")
CHANGES = ("identity", "partitions", "truncation", "topic", "cluster")
"""What an operator may accept: one of the first, or of the second also several, with commas."""

Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline that halted.")]
Accepting = Annotated[
    str,
    typer.Option(
        "--accept",
        metavar="WHAT",
        help="restore: continue from the restored state. reset: the table was emptied or "
        "recreated; start again where the configuration says. identity: another source.key. "
        "partitions: recorded partitions are gone. truncation: logs were cut below the position. "
        "topic: topics were recreated. cluster: another cluster answers. "
        "Several changes with commas: topic,partitions",
    ),
]
AtOffsets = Annotated[
    str,
    typer.Option(
        "--offsets",
        metavar="WHERE",
        help="For cluster. same: offsets mean the same records there. start: start again where "
        'the configuration says. Or a JSON file: {"topic": {"partition": next offset}}',
    ),
]
OnlyShow = Annotated[bool, typer.Option("--dry-run", help="Only show what it means.")]


def resume(
    file: ConfigFile,
    pipeline: Pipeline,
    accept: Accepting,
    offsets: AtOffsets = "",
    dry_run: OnlyShow = False,
    json: AsJson = False,
) -> None:
    """Accept that the table or source of a pipeline changed.

    Shows what is known and what may be lost or doubled, then writes a ledger entry that records
    it; the next run continues from there. Only what is found now can be accepted.
    """
    check_accepted(accept, offsets)
    config = load_local(file)
    name = named(config, pipeline)
    at = read_offsets(offsets)
    from rivermouth.cli.outcome import accepted
    from rivermouth.cli.render import as_json, console
    from rivermouth.cli.running import local_run
    from rivermouth.local.typed import typed
    from rivermouth.protocol.consequences import ResumePlan
    from rivermouth.run.report import Silent

    shown = console(stderr=json)
    plans: list[ResumePlan] = []

    def agree(plan: ResumePlan) -> bool:
        plans.append(plan)
        for line in plan.lines:
            shown.print(f"{name}: {line}", soft_wrap=True)
        return not dry_run

    with local_run(config, shown) as run:
        position = run.resume(name, accept, Silent(), at, agree)
    shown.print(accepted(name, accept, position, dry_run=dry_run), soft_wrap=True)
    if not dry_run:
        shown.print(f"Next: {typed('run', file)}", soft_wrap=True)
    if json:
        facts = {"accepted": None if dry_run else accept, "position": position.as_nested()}
        as_json({"name": name, **facts, "plan": plans[0].as_dict()})


def check_accepted(accept: str, offsets: str = "") -> None:
    """Raises ConfigError for words by which nothing can be accepted, and for ``offsets`` that
    would have no effect.
    """
    if offsets and "cluster" not in accept.split(","):
        raise ConfigError((f"--offsets {offsets}: only --accept cluster asks for it",))
    if accept not in ROLLBACKS and not {*accept.split(",")} <= {*CHANGES}:
        known = f"{' or '.join(ROLLBACKS)}, or of {', '.join(CHANGES)}, with commas"
        raise ConfigError((f"--accept {accept}: write one of {known}",))


def read_offsets(where: str) -> Offsets | None:
    """Where topics of another cluster continue; None: not told. Raises ConfigError."""
    if where in ("", "same", "start"):
        return where or None
    from rivermouth.protocol.offsets import Position

    try:
        with open(where, encoding="utf-8") as file:
            read = json_text.load(file)
        if not all(type(at) is int for each in read.values() for at in each.values()):
            raise TypeError("each offset must be a whole number")
        return Position.from_nested(read)
    except (OSError, ValueError, TypeError, AttributeError) as fault:
        line = f"--offsets {where}: write same, start, or a file of positions: {fault}"
        raise ConfigError((line,)) from fault
