"""What a command did or found, as text for people: for the commands and for the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rivermouth.cli.proving import left_out
from rivermouth.cli.render import failure, wrapped
from rivermouth.cli.text_table import text_table
from rivermouth.run.report import exit_code

if TYPE_CHECKING:
    from rivermouth.operate.maintain.maintenance import MaintenanceReport
    from rivermouth.protocol.offsets import Position
    from rivermouth.run.deletes import AcceptedDelete
    from rivermouth.run.report import PipelineReport
    from rivermouth.verify import PipelineProof, Verification

NOT_OK = 3
"""The exit code of a verification that found a fault."""


def ended(reports: Sequence[PipelineReport], *, stopped: bool, told: bool) -> str:
    """A line for every pipeline of a run, the failed ones last; then the verdict.

    ``told``: each failure was told when it happened, and only its code is repeated.
    """
    failed = [each for each in reports if each.error is not None]
    lines = [each.line() for each in reports if each.error is None]
    lines += [end_of(each) if told else _failed(each) for each in failed]
    if failed:
        number = f"{len(failed)} of {len(reports)} pipelines"
        return "\n".join([*lines, f"FAILED: {number}, exit code {exit_code(reports)}"])
    records = sum(each.applied for each in reports)
    end = "stopped; the next run continues from here" if stopped else f"{records:,} records"
    return "\n".join([*lines, f"OK: {end}"])


def end_of(report: PipelineReport) -> str:
    """The line of a pipeline at the end of a run that told each failure when it happened."""
    if report.error is None:
        return report.line()
    return f"{report.pipeline}: FAILED {report.error.code}, as told above"


def _failed(report: PipelineReport) -> str:
    error = report.error
    return "" if error is None else failure(report.pipeline, error, report.retries)


def maintained(reports: Sequence[MaintenanceReport], *, dry_run: bool = False) -> str:
    """A line for each table, then the skipped tables, the failures and the verdict."""
    from rivermouth.operate.maintain.maintenance import SCRATCH

    headers = ("pipeline", "table", "compacted", "removed", "orphan rows")
    rows = [
        (each.pipeline, table.table, *(f"{n:,}" for n in table.counts))
        for each in reports
        for table in each.tables
    ]
    lines = [text_table(headers, rows, numbers=range(2, 5))]
    skipped = {each.table: each.quiet for report in reports for each in report.tables if each.quiet}
    lines += [wrapped(f"{table}: skipped: {why}", "  ", "") for table, why in skipped.items()]
    failed = [each for each in reports if each.error is not None]
    lines += [failure(each.pipeline, each.error) for each in failed if each.error is not None]
    pipelines = [each for each in reports if each.pipeline != SCRATCH]
    lost = sum(each.error is not None for each in pipelines)
    if failed:
        lines.append(f"FAILED: {lost} of {len(pipelines)} pipelines" if lost else "FAILED: scratch")
    else:
        lines.append("OK: dry run, nothing was changed" if dry_run else "OK")
    return "\n".join(lines)


def verified(found: Verification) -> str:
    """A line for each pipeline, then the faults, what was not checked, its sum, and the verdict."""
    headers = ("pipeline", "", "entries", "records", "bad", "missing", "twice", "gaps", "overlaps")
    lines = [text_table(headers, [_row(each) for each in found.pipelines], numbers=range(2, 9))]
    for each in found.pipelines:
        lines += [wrapped(f"{each.name}: accepted: {it}", "  ", "") for it in each.accepted]
        lines += [wrapped(f"{each.name}: {fault}", "  ", "") for fault in each.problems]
        lines += [wrapped(f"{each.name}: not told: {it}", "  ", "") for it in each.not_told]
        lines += [wrapped(f"{each.name}: not checked: {it}", "  ", "") for it in each.unchecked]
        lines += [wrapped(f"{each.name}: {it}", "  ", "") for it in left_out(each)]
        if each.erased:
            lines.append(f"  {each.name}: {each.erased:,} deleted on purpose, as its ledger says")
    left = sum((Counter(each.left) for each in found.pipelines), Counter())
    if left:
        named = (f"{number:,} {what.value.replace('_', ' ')}" for what, number in left.items())
        lines.append(wrapped(f"not checked: {', '.join(named)}", "", "  "))
    failed = [each.name for each in found.pipelines if not each.ok]
    records = sum(each.records for each in found.pipelines)
    verdict = f"OK: {records:,} records read again, 0 missing, 0 duplicated"
    return "\n".join([*lines, f"FAILED: {', '.join(failed)}" if failed else verdict])


def _row(proof: PipelineProof) -> tuple[str, ...]:
    facts = proof.as_dict()
    names = ("entries", "records", "quarantined", "missing", "duplicated", "gaps", "overlaps")
    return (proof.name, "OK" if proof.ok else "FAILED", *(f"{facts[name]:,}" for name in names))


def accepted(name: str, what: str, position: Position, *, dry_run: bool = False) -> str:
    """Where the pipeline ``name`` continues, once an operator accepted ``what``."""
    lines = [f"{name}: {each} continues at {at:,}" for each, at in position.offsets.items()]
    done = "dry run, nothing was written" if dry_run else f"{what} accepted"
    return "\n".join([*lines, f"OK: {done}"])


def shown_delete(name: str, delete: AcceptedDelete) -> str:
    """A DELETE of others as the table's log tells it, and how many rows of ``name`` it took."""
    at = datetime.fromtimestamp(delete.timestamp_ms / 1000, timezone.utc).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )
    took = _number(delete.rows, "row")
    known = took if delete.listed else f"at most {took}, and nobody can tell which any more"
    what = f"{delete.operation} {delete.predicate}".strip()
    return f"{name}: version {delete.version}, {at}: {what}: {known}"


def deletes_accepted(found: Sequence[AcceptedDelete], *, dry_run: bool) -> str:
    """The verdict of ``accept-deletes``."""
    rows = sum(each.rows for each in found)
    said = f"{_number(len(found), 'DELETE')}, {_number(rows, 'row')}"
    return f"OK: dry run, nothing was written: {said}" if dry_run else f"OK: accepted {said}"


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
