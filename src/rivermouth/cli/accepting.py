"""``resume`` and ``accept-deletes``: an operator accepts what halted a pipeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    PipelineName,
    known_secrets,
    load_local,
)

if TYPE_CHECKING:
    from rivermouth.run.accepting import AcceptedDelete


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
    pipeline: PipelineName,
    accept: Accepting,
    offsets: AtOffsets = "",
    dry_run: OnlyShow = False,
    json: AsJson = False,
) -> None:
    """Accept that the table or source of a pipeline changed.

    Shows what is known and what may be lost or doubled, then writes a ledger entry that records
    it; the next run continues from there. Only what is found now can be accepted.
    """
    from rivermouth.protocol.accept_changes import check_accepted, read_offsets

    check_accepted(accept, offsets)
    config = load_local(file)
    name = config.named(pipeline)
    at = read_offsets(offsets)
    from rivermouth.local.commands import typed
    from rivermouth.protocol.accept_changes import ResumePlan
    from rivermouth.run.outcome import accepted
    from rivermouth.run.report import Silent
    from rivermouth.run.starting import local_run
    from rivermouth.run.text import as_json, console

    shown = console(stderr=json)
    plans: list[ResumePlan] = []

    def agree(plan: ResumePlan) -> bool:
        plans.append(plan)
        for line in plan.lines:
            shown.print(f"{name}: {line}", soft_wrap=True)
        return not dry_run

    with local_run(config, shown, known_secrets()) as run:
        position = run.resume(name, accept, Silent(), at, agree)
    shown.print(accepted(name, accept, position, dry_run=dry_run), soft_wrap=True)
    if not dry_run:
        shown.print(f"Next: {typed('run', file)}", soft_wrap=True)
    if json:
        facts = {"accepted": None if dry_run else accept, "position": position.as_nested()}
        as_json({"name": name, **facts, "plan": plans[0].as_dict()})


Versions = Annotated[
    str,
    typer.Option(
        "--versions",
        metavar="12,15-17",
        help="The versions of the table at which somebody deleted rows, each by a DELETE with a "
        "predicate.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the DELETEs; write nothing.")]

_PART = re.compile(r"\s*(\d{1,12})\s*(?:-\s*(\d{1,12})\s*)?")
_AT_ONCE = 1000


def accept_deletes(
    file: ConfigFile,
    pipeline: PipelineName,
    versions: Versions,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Accept DELETEs of others: their rows are gone on purpose.

    Writes a ledger entry that records which rows each DELETE took, by their offsets, so that verify
    stays exact about all other rows. Needs the files from before the DELETE: run it before VACUUM.
    Only DELETE is accepted, not UPDATE or MERGE.
    """
    wanted = versions_in(versions)
    config = load_local(file)
    name = config.named(pipeline)
    from rivermouth.local.commands import typed
    from rivermouth.run.outcome import deletes_accepted, shown_delete
    from rivermouth.run.starting import local_run
    from rivermouth.run.text import as_json, console

    shown = console(stderr=json)

    def tell(each: AcceptedDelete) -> None:
        shown.print(shown_delete(name, each), soft_wrap=True, markup=False)

    with local_run(config, shown, known_secrets()) as run:
        found = run.accept_deletes(name, wanted, tell, dry_run=dry_run)
    shown.print(deletes_accepted(found, dry_run=dry_run), soft_wrap=True)
    if not dry_run:
        shown.print(f"Next: {typed('verify', file)}", soft_wrap=True)
    if json:
        as_json({"name": name, "dry_run": dry_run, "deletes": [each.as_dict() for each in found]})


def versions_in(text: str) -> list[int]:
    """The versions that ``12,15-17`` names, in order. Raises ConfigError."""
    from rivermouth.errors import ConfigError

    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + _AT_ONCE:
            line = f'--versions: "{part.strip()}" is no version and no range; write 12,15-17'
            raise ConfigError((line,))
        found |= {*range(first, last + 1)}
    return sorted(found)
