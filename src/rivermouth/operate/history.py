"""What became of a table, commit by commit, as one of its pipelines sees it. No JVM.

The log is read from its end, and only as far as is asked. What a RESTORE or a TRUNCATE took back is
told as such: its offsets were read, and its rows are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.protocol.commits import CommitRecord, app_id, readable_entry
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.history import rolls_back
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import DeltaLog

NEVER = -1
"""A version before all others: nothing of what was there stands."""


@dataclass(frozen=True)
class Event:
    """One commit of a table, in the history of a pipeline.

    ``what`` says what its ``entry`` is for, or names Delta's operation where it has none of the
    pipeline. ``stands``: its effect is there; False: a later commit took it back; None: nobody can
    tell, since a RESTORE to a time does not record the version.
    """

    record: CommitRecord
    what: str
    entry: Entry | None
    stands: bool | None

    def counted(self) -> tuple[int, int, int] | None:
        """Records that took effect, bad ones, and those without a row; None: not known."""
        rows = self.entry.rows if self.entry is not None else None
        if rows is None:
            return None
        return (
            sum(each.applied for each in rows),
            sum(each.quarantined for each in rows),
            sum(each.skipped for each in rows),
        )

    @property
    def offsets(self) -> int | None:
        """The offsets that it covers; None where it has no entry."""
        return None if self.entry is None else sum(each.span for each in self.entry.ranges)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of one commit."""
        applied, quarantined, skipped = self.counted() or (None, None, None)
        entry = self.entry
        return {
            "version": self.record.version,
            "committed_at_ms": self.record.timestamp_ms,
            "what": self.what,
            "by": self.record.engine,
            "stands": self.stands,
            "sequence": entry and entry.sequence,
            "commit": entry and entry.commit,
            "offsets": self.offsets,
            "applied": applied,
            "quarantined": quarantined,
            "skipped": skipped,
            "ranges": [] if entry is None else [each.as_dict() for each in entry.ranges],
        }


def events(backwards: Iterable[CommitRecord], pipeline: str) -> Iterator[Event]:
    """The commits, which come newest first, with what of each stands. Pure."""
    reaches: int | None = None  # what came after this version is taken back
    told = True
    for record in backwards:
        if reaches is not None and record.version <= reaches:
            reaches = None
        stands = reaches is None if told else None
        entry = readable_entry(record, pipeline)
        yield Event(record, _what(record, entry, pipeline), entry, stands)
        if stands and rolls_back(record):
            reaches = _restored(record)
            told = reaches is not None


def _restored(record: CommitRecord) -> int | None:
    """The version to which a commit took the table back; None: nobody can tell."""
    if record.operation.upper() != "RESTORE":
        return NEVER
    version = str(record.parameters.get("version"))
    return int(version) if version.isdigit() else None


def _what(record: CommitRecord, entry: Entry | None, pipeline: str) -> str:
    if entry is not None:
        return _kind(entry)
    others = [app.removeprefix(app_id("")) for app in record.txns if app.startswith(app_id(""))]
    named = f"{record.operation} of {', '.join(others)}" if others else record.operation
    columns = record.parameters.get("columns")
    return f"{named}: {columns}" if columns and "COLUMN" in record.operation else named


def _kind(entry: Entry) -> str:
    if entry.accepts is not None:
        return f"{entry.accepts.kind} accepted"
    if entry.changes is not None:
        return "change accepted"
    if entry.deletes:
        return "deletes accepted"
    if entry.replayed:
        return "replay"
    if entry.lost:
        return "loss recorded"
    if any(each.span for each in entry.ranges):
        return "batch"
    return "new partitions" if entry.ranges else "heartbeat"


@dataclass(frozen=True)
class History:
    """The newest commits of a pipeline's table, the newest first."""

    pipeline: str
    table: str
    events: Sequence[Event]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth history --json``."""
        commits = [each.as_dict() for each in self.events]
        return {"pipeline": self.pipeline, "table": self.table, "commits": commits}


def history(
    config: Config,
    pipeline: str,
    most: int | None = None,
    since_ms: float | None = None,
    secrets: Secrets = unresolved,
) -> History:
    """The newest ``most`` commits (None: all), but for those before ``since_ms``.

    Raises ConfigError for a catalog, LedgerBroken and LogUnreadable.
    """
    chosen = config.pipelines[pipeline]
    log = DeltaLog(Lake.of(config, secrets).store(chosen.target.table))
    told = events(log.commits_backwards(), chosen.ledger_name)
    late = takewhile(lambda each: each.record.timestamp_ms >= (since_ms or 0), told)
    return History(pipeline, str(chosen.target.table), [*islice(late, most)])
