"""``maintain``: small files into large ones, and away with what nothing needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, Select, load_local, selected

if TYPE_CHECKING:
    from rivermouth.operate.maintain.maintenance import MaintenanceReport

RetainHours = Annotated[
    int,
    typer.Option("--retain-hours", help="Refuse tables that keep old files for less; 24 or more."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")]


def maintain(
    file: ConfigFile,
    select: Select = "",
    retain_hours: RetainHours = 168,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Compact the tables and remove what nothing needs.

    Old files, quarantine rows of commits that never came, scratch of dead runs. No row that
    counts is touched. Here no run may write the same tables meanwhile; on Databricks it may.
    """
    config = load_local(file)
    names = selected(config, select)
    from rivermouth.cli.running import require_spark, start_spark

    require_spark()
    from rivermouth.cli.render import as_json, console
    from rivermouth.local.scratch import scratch_root
    from rivermouth.operate.maintain.maintenance import Maintenance, check_retention
    from rivermouth.run.report import exit_code

    check_retention(retain_hours)
    session = start_spark(console(stderr=True))
    try:
        maintenance = Maintenance(
            config, session, scratch_root(), retain_hours=retain_hours, dry_run=dry_run
        )
        reports = maintenance.pipelines(names)
    finally:
        session.stop()
    if json:
        as_json({"dry_run": dry_run, "pipelines": [each.as_dict() for each in reports]})
    else:
        typer.echo(render(reports, dry_run=dry_run))
    raise typer.Exit(exit_code(reports))


def render(reports: Sequence[MaintenanceReport], *, dry_run: bool) -> str:
    """A line for each table, then those left alone, then the failures, then the verdict."""
    from rivermouth.cli.render import failure, wrapped
    from rivermouth.cli.text_table import text_table
    from rivermouth.operate.maintain.maintenance import SCRATCH

    headers = ("pipeline", "table", "compacted", "removed", "orphan rows")
    rows = [
        (each.pipeline, table.table, *(f"{n:,}" for n in table.counts))
        for each in reports
        for table in each.tables
    ]
    lines = [text_table(headers, rows, numbers=range(2, 5))]
    quiet = {each.table: each.quiet for report in reports for each in report.tables if each.quiet}
    lines += [wrapped(f"{table}: left alone: {why}", "  ", "") for table, why in quiet.items()]
    failed = [each for each in reports if each.error is not None]
    lines += [failure(each.pipeline, each.error) for each in failed if each.error is not None]
    ours = [each for each in reports if each.pipeline != SCRATCH]
    lost = sum(each.error is not None for each in ours)
    if failed:
        lines.append(f"FAILED: {lost} of {len(ours)} pipelines" if lost else "FAILED: scratch")
    else:
        lines.append("OK: a dry run, nothing was done" if dry_run else "OK")
    return "\n".join(lines)
