"""What a replay would do, and what it did: values for people and for machines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rivermouth.protocol.entry import Counts
from rivermouth.protocol.offsets import OffsetRange


@dataclass(frozen=True)
class RangeRead:
    """A range that was read: its records, and how many of them are in quarantine."""

    range: OffsetRange
    records: int
    bad: int

    @staticmethod
    def of(ranges: Sequence[OffsetRange], counts: Counts) -> tuple[RangeRead, ...]:
        """The ranges with their counts, in the same order."""
        return tuple(
            RangeRead(each, rows.applied + rows.quarantined, rows.quarantined)
            for each, rows in zip(ranges, counts, strict=True)
        )

    def __str__(self) -> str:
        bad = f", {self.bad:,} of them bad" if self.bad else ""
        records = "1 record" if self.records == 1 else f"{self.records:,} records"
        return f"{self.range}: {records}{bad}"

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        it = self.range
        return {
            "topic": it.topic,
            "partition": it.partition,
            "from": it.from_offset,
            "until": it.until_offset,
            "records": self.records,
            "bad": self.bad,
        }


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay would do.

    ``since`` is the first entry whose records are applied once more in ``table``; None: ``table``
    is another one, and gets rows of its own. ``inserted``, ``updated`` and ``deleted`` are its rows
    that would change. ``there``: that table has the rows already.
    """

    pipeline: str
    table: str
    ranges: tuple[RangeRead, ...]
    inserted: int
    updated: int = 0
    deleted: int = 0
    since: int | None = None
    there: bool = False

    @property
    def rows(self) -> int:
        """Rows that would change."""
        return self.inserted + self.updated + self.deleted

    @property
    def lines(self) -> Iterator[str]:
        """What is shown before anything is written."""
        if self.since is not None:
            yield f"in place, all that was read since entry {self.since} is applied once more"
        for each in self.ranges:
            yield str(each)
        changes = f"{self.inserted:,} to insert"
        if self.since is not None:
            changes += f", {self.updated:,} to update, {self.deleted:,} to delete"
        yield f"{self.table} has these rows already" if self.there else f"{self.table}: {changes}"

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "pipeline": self.pipeline,
            "table": self.table,
            "since_entry": self.since,
            "ranges": [each.as_dict() for each in self.ranges],
            "records": sum(each.records for each in self.ranges),
            "rows": {
                "inserted": self.inserted,
                "updated": self.updated,
                "deleted": self.deleted,
            },
            "already_there": self.there,
        }


@dataclass(frozen=True)
class Replayed:
    """The outcome; ``written``: a commit was made. ``sequence`` is that of its ledger entry."""

    plan: ReplayPlan
    written: bool
    sequence: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {**self.plan.as_dict(), "written": self.written, "sequence": self.sequence}
