"""``replay``: records that a pipeline has read are applied once more, or into another table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    PipelineName,
    known_secrets,
    load_local,
)
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.config import TableName
    from rivermouth.replay.report import Replayed, ReplayPlan

From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="WHERE",
        help="The first record: earliest, a time as 2026-11-01T06:00:00Z, or an offset as "
        'orders:0:120; several with commas. Or JSON: {"orders": {"0": 120}}',
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="WHERE",
        help="The first record that is not replayed. Default: where the pipeline stands.",
    ),
]
Into = Annotated[
    str,
    typer.Option(
        "--into", metavar="SCHEMA.TABLE", help="Write the rows into a table of their own."
    ),
]
_IN_A_CATALOG = (
    "read the ranges with rivermouth.read and write the rows as you wish, see docs/replay.md"
)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
Yes = Annotated[bool, typer.Option("--yes", help="Write without asking.")]


def replay(
    file: ConfigFile,
    pipeline: PipelineName,
    begin: From,
    end: To = "",
    into: Into = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Apply records that were read once more.

    Reads them again from Kafka, and shows how many there are and which rows would change. Without
    --into the pipeline's own table is mended: that is safe only in some modes, and all that was
    read since is applied in its order. With --into the rows go into a new table.
    """
    from rivermouth.replay.request import read_bound

    first, last = read_bound("--from", begin), read_bound("--to", end) if end else None
    table = read_into(into)
    config = load_local(file, _IN_A_CATALOG)
    name = config.named(pipeline)
    from rivermouth.run.starting import local_spark, require_spark

    require_spark()
    from rivermouth.local.commands import typed
    from rivermouth.local.scratch import scratch_root
    from rivermouth.replay import command
    from rivermouth.run.text import as_json, console

    shown = console(stderr=json)

    def agree(plan: ReplayPlan) -> bool:
        for line in plan.lines:
            shown.print(f"{name}: {line}", soft_wrap=True)
        if dry_run:
            return False
        return yes or not plan.rows or typer.confirm("Write this?", err=True)

    with local_spark(config, shown, known_secrets(), [name]) as spark:
        found = command.replay(
            config, spark, scratch_root(), name, first, last, table, agree, known_secrets()
        )
    shown.print(replayed(found, dry_run=dry_run), soft_wrap=True)
    if found.sequence is not None:
        shown.print(f"Next: {typed('verify', file)}", soft_wrap=True)
    if json:
        as_json({"name": name, "dry_run": dry_run, **found.as_dict()})


def read_into(text: str) -> TableName | None:
    """The table that ``--into`` names; None: none. Raises ConfigError."""
    from rivermouth.config.names import read_table
    from rivermouth.config.problems import Refused

    if not text:
        return None
    try:
        return read_table(text)
    except Refused:
        raise ConfigError((f"--into {text}: write SCHEMA.TABLE",)) from None


def replayed(found: Replayed, *, dry_run: bool) -> str:
    """The verdict of a replay."""
    plan = found.plan
    if found.written:
        entry = f", ledger entry {found.sequence}" if found.sequence is not None else ""
        return f"OK: {plan.rows:,} rows changed in {plan.table}{entry}"
    if plan.there or not plan.rows:
        return f"OK: nothing to do in {plan.table}"
    return "OK: dry run, nothing was written" if dry_run else "nothing was written"
