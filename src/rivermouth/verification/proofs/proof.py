"""What each shape of table gives the checker: a proof of its rows, and what a proof works with.

Memory: keys are spread by hash over at most 1,024 files on disk, and one file at a time is
compared. A file of more than ``2 * Bounds.bucket`` records and rows, or of more than 64 MiB, is
spread again. So of a topic of any size no more than that is in memory, and four buffers of 32 MiB;
Python's values take a few times their bytes. Only what belongs to a single key is never split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rivermouth.verification.ledger.entry import Partition
from rivermouth.verification.proofs.quarantine import NO_RECORDS, Quarantined
from rivermouth.verification.proofs.spill import Buckets
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows, Unreadable

Progress = Callable[[str, int, int], None]
"""Called with pipeline, offsets done, offsets in all."""


@dataclass(frozen=True)
class Bounds:
    """How much is held in memory at once.

    ``window``: offsets of one partition, see ``append``; ``bucket``: records of keys, see
    ``keyed``. ``values``: up to so many offsets the values of all rows of an append are compared.
    """

    window: int = 1 << 20
    bucket: int = 50_000
    values: int = 200_000

    @staticmethod
    def of_every_value() -> Bounds:
        """All values are compared; the windows are smaller, since their rows are in memory."""
        return Bounds(window=1 << 14, values=1 << 62)


@dataclass(frozen=True)
class Stored:
    """What a pipeline wrote: the rows of its table, and its quarantined records by partition."""

    table: Rows
    quarantine: Mapping[Partition, Quarantined]

    def quarantined(self, partition: Partition) -> Quarantined:
        """The quarantined records of a partition."""
        return self.quarantine.get(partition, NO_RECORDS)

    def require(self, columns: Iterable[str]) -> None:
        """Raises Unreadable where the table does not have all these columns."""
        lacking = sorted({*columns} - {*self.table.schema.names})
        if lacking:
            raise Unreadable(f"it lacks the columns {', '.join(lacking)}")


@dataclass(frozen=True)
class Workspace:
    """What a proof may use: an empty folder, bounds of memory, and whom to tell of progress."""

    folder: Path
    bounds: Bounds
    progress: Progress


class Proof(Protocol):
    """Compares the rows of one table with Kafka; ``Shape.proof`` of the registry names one."""

    def __call__(self, subject: Subject, stored: Stored, workspace: Workspace) -> None:
        """Add every difference to ``subject.findings``, and to ``unchecked`` what is not checked.

        Called once for each pipeline, after its ledger and its quarantine were read. Reads Kafka
        by ``replay``, once and to the end: that also counts the visible records of each range and
        compares the quarantined ones. Raises Unreadable and SourceError.
        """


_BUCKETS_MAX = 1024
_BUCKET_BYTES = 64 << 20
Items = Iterator[tuple[Any, tuple[Any, ...]]]
"""Keys, and the facts of each."""
Added = TypeVar("Added")


class Pairing:
    """What records say of keys, and the rows of the table: put together key by key, on disk."""

    def __init__(self, subject: Subject, workspace: Workspace) -> None:
        self._workspace = workspace
        number = min(_BUCKETS_MAX, 1 + subject.coverage.total() // workspace.bounds.bucket)
        self.records = Buckets(workspace.folder / "records", number)
        self.rows = Buckets(workspace.folder / "rows", number)

    def by_key(
        self, begin: Callable[[], Added], add: Callable[[Added, tuple[Any, ...]], None]
    ) -> Iterator[tuple[tuple[Any, ...], Added, list[tuple[Any, ...]]]]:
        """Each key, what its records say and its rows.

        ``add`` puts what one record says to what those before said, for the first to ``begin()``.
        """
        for records, rows in self._by_bucket():
            by_key: dict[Any, tuple[Added, list[tuple[Any, ...]]]] = {}
            for key, facts in records:
                if key not in by_key:
                    by_key[key] = begin(), []
                add(by_key[key][0], facts)
            for key, row in rows:
                if key not in by_key:
                    by_key[key] = begin(), []
                by_key[key][1].append(row)
            yield from ((key, *both) for key, both in by_key.items())

    def _by_bucket(self) -> Iterator[tuple[Items, Items]]:
        """Both sides of one bucket after the other; what is too much for one is split."""
        sides = (self.records, self.rows)
        number, limit = len(self.records.items), 2 * self._workspace.bounds.bucket
        for each in range(number):
            items = sum(side.items[each] for side in sides)
            parts = max(
                -(-items // limit), sum(side.sizes[each] for side in sides) // _BUCKET_BYTES
            )
            if parts <= 1:
                yield self.records.take(each), self.rows.take(each)
                continue
            again = [
                Buckets(self._workspace.folder / f"{kind}-{each}", parts, skip=number)
                for kind in ("records", "rows")
            ]
            for whole, split in zip(sides, again, strict=True):
                for key, facts in whole.take(each):
                    split.add(key, facts, size(facts))
            for part in range(parts):
                yield again[0].take(part), again[1].take(part)


def size(values: Iterable[Any]) -> int:
    """About how many bytes the texts of a row or change have."""
    return sum(
        len(each) if isinstance(each, (str, bytes)) else size(each)
        for each in values
        if isinstance(each, (str, bytes, tuple))
    )


def plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values whose text is plain text: a reader may give text that knows where it comes from."""
    return tuple(str(each) if isinstance(each, str) else each for each in values)
