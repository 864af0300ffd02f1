"""What a command did, found or proved, as text for people: for the commands and for the jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from rivermouth.errors import ConfigError
from rivermouth.run.report import exit_code
from rivermouth.run.text import failure, note, text_table, wrapped

if TYPE_CHECKING:
    from rivermouth.operate.maintain import MaintenanceReport
    from rivermouth.protocol.offsets import Position
    from rivermouth.run.accepting import AcceptedDelete
    from rivermouth.run.report import PipelineReport
    from rivermouth.verification import PipelineProof, Since, Verification
    from rivermouth.verification.proved import RecordState


_DURATION = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = "a time with its zone, as 2026-11-21T06:00:00Z, or a duration, as 1d or 12h"
_WIDTH = 79


@dataclass(frozen=True)
class Report:
    """How a run ended; as text it is what the command ``run`` says at its end.

    ``pipelines`` tells what each one did, in the order of the file. ``stopped``: somebody asked for
    the end.
    """

    pipelines: tuple[PipelineReport, ...]
    stopped: bool = False

    @property
    def ok(self) -> bool:
        """Whether no pipeline failed."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The exit code of the command, see ``exit_code`` of this package."""
        return exit_code(self.pipelines)

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth run --json``."""
        return {"pipelines": [each.as_dict() for each in self.pipelines]}

    def __str__(self) -> str:
        return ended(self.pipelines, stopped=self.stopped, shown_before=False)


class Shares:
    """One line on a terminal that changes: what is being verified. It disappears at the end."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._shown: dict[str, str] = {}

    def __call__(self, pipeline: str, done: int, total: int) -> None:
        """``done`` of ``total`` offsets of a pipeline are verified."""
        if done < total:
            self._shown[pipeline] = f"{pipeline} {100 * done // total} %"
        else:
            self._shown.pop(pipeline, None)
        line = f"verifying {', '.join(self._shown.values())}"[:_WIDTH] if self._shown else ""
        self._terminal.write(f"\r\x1b[K{line}")
        self._terminal.flush()


def read_since(text: str, now_s: float, option: str = "--since") -> Since | None:
    """What ``--since`` asks for; None where it is empty.

    Raises ConfigError, which calls the argument ``option``.
    """
    from rivermouth.verification import Since

    if text in ("", "last"):
        return Since() if text else None
    return Since(read_moment(text, now_s, option, "last, "))


def read_moment(text: str, now_s: float, option: str, also: str = "") -> float:
    """The time that an option names, in ms since 1970: a time, or how long ago.

    ``also`` is what else may be written. Raises ConfigError.
    """
    form = f"write {also}{_FORM}"
    duration = _DURATION.fullmatch(text)
    if duration:
        return (now_s - int(duration[1]) * _SECONDS[duration[2]]) * 1000
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as fault:
        raise ConfigError((f"{option} {text}: {form}",)) from fault
    if moment.tzinfo is None:
        raise ConfigError((f"{option} {text}: the zone is missing; {form}",))
    if moment.timestamp() > now_s:
        raise ConfigError((f"{option} {text}: that time is still to come",))
    return moment.timestamp() * 1000


def left_out(proof: PipelineProof) -> Iterator[str]:
    """What a verification did not read again, why it read all, and why it is not on record."""
    if proof.read_all is not None:
        yield f"everything was read: {proof.read_all}"
    before = proof.reach.before if proof.reach is not None else None
    if before is not None:
        known = "not checked" if before.proved_ms is None else f"proved at {at(before.proved_ms)}"
        yield f"entries up to {before.entry:,}: {known}"
        yield "their rows were not read again: what was deleted or changed there is not seen"
        if before.keys:
            yield f"of the keys that were read, {before.keys:,} have a row from before"
    if proof.recording is not None and proof.recording.problem is not None:
        yield f"not recorded: {proof.recording.problem}"


def proved(found: RecordState | None, now_s: float) -> str:
    """Up to which entry a pipeline is proved, and when that was: a cell of ``status``."""
    if found is None:
        return "never"
    if found.void is not None:
        return "void"
    return f"{found.proved.last.sequence:,}, {ago(now_s - found.proved.at_ms / 1000)}"


def proof_note(found: RecordState, now_s: float) -> str:
    """What is to be known of a proof besides; empty where it stands and all was read at once."""
    known = found.proved
    if found.void is not None:
        last = f"entry {known.last.sequence:,}"
        return f"the proof up to {last}, of {at(known.at_ms)}, is void: {found.void}"
    notes = []
    if known.full_entry != known.last.sequence:
        when = ago(now_s - known.full_ms / 1000)
        notes.append(f"read as a whole up to entry {known.full_entry:,}, {when}")
    holes = [f"{what.replace('_', ' ')} ({number:,})" for what, number in known.left.items()]
    if holes:
        notes.append(f"not checked: {', '.join(holes)}")
    if found.unread:
        notes.append(f"{found.unread:,} commits since, too many to tell here whether it stands")
    return f"proof: {'; '.join(notes)}" if notes else ""


def ago(seconds: float) -> str:
    """How long ago something was."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds / 60)} min ago"
    days = int(seconds / 86_400)
    if days == 0:
        return f"{int(seconds / 3600)} h ago"
    return "yesterday" if days == 1 else f"{days:,} days ago"


def at(ms: float) -> str:
    """A time in ms since 1970, in UTC, to the minute; the number where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{ms:.0f} ms"


NOT_OK = 3
"""The exit code of a verification that found a fault."""


def ended(reports: Sequence[PipelineReport], *, stopped: bool, shown_before: bool) -> str:
    """A line for every pipeline of a run, the failed ones last; then the verdict.

    ``shown_before``: each failure was told when it happened, and only its code is repeated.
    """
    failed = [each for each in reports if each.error is not None]
    lines = [each.line() for each in reports if each.error is None]
    lines += [end_of(each) if shown_before else _failed(each) for each in failed]
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
    from rivermouth.operate.maintain import SCRATCH

    headers = ("pipeline", "table", "compacted", "removed", "orphan rows")
    rows = [
        (each.pipeline, table.table, *(f"{n:,}" for n in table.counts))
        for each in reports
        for table in each.tables
    ]
    lines = [text_table(headers, rows, numbers=range(2, 5))]
    skipped = {each.table: each.quiet for report in reports for each in report.tables if each.quiet}
    lines += [note(table, f"skipped: {why}") for table, why in skipped.items()]
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
        lines += [note(each.name, f"accepted: {it}") for it in each.accepted]
        lines += [note(each.name, fault) for fault in each.problems]
        lines += [note(each.name, f"not told: {it}") for it in each.not_told]
        lines += [note(each.name, f"not checked: {it}") for it in each.unchecked]
        lines += [note(each.name, it) for it in left_out(each)]
        if each.skipped:
            lines.append(f"  {each.name}: {each.skipped:,} skipped, since they have no value")
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
