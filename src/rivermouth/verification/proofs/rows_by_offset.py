"""The rows of a table on disk, by partition and by window of offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.verification.ledger.coverage import Flags, Offsets, Span
from rivermouth.verification.ledger.entry import Partition, shown
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs.spill import Spill
from rivermouth.verification.result import Kind, Unchecked, count
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows, coordinates, row_field, tuples


class FormerRows:
    """Rows whose records Kafka no longer shows, since an operator accepted a change of the source.

    They are counted, and searched for doubles. Their offsets wait on disk, in windows of ``window``
    offsets.
    """

    def __init__(self, subject: Subject, folder: Path, window: int) -> None:
        self.count = 0
        self._subject = subject
        self._spill = Spill(folder)
        self._window = window

    def add(self, partition: Partition, offsets: Offsets) -> None:
        """Keep the offsets of rows of a partition."""
        self.count += len(offsets)
        numbers = offsets // self._window
        for number in np.unique(numbers).tolist():
            self._spill.add((partition, number), offsets[numbers == number].tobytes())

    def check(self) -> None:
        """Add a finding for each row that is there more often than ranges cover its offset.

        Where a record of theirs may have had several rows, nobody can tell.
        """
        if may_explode(self._subject):
            return
        former, removed = self._subject.coverage.former, self._subject.removed_changes
        for partition, number in sorted(self._spill.names()):
            rows = np.frombuffer(self._spill.take((partition, number)), np.int64)
            offsets, times = np.unique(rows, return_counts=True)
            more = times - former.times(partition, offsets) - removed
            self._subject.findings.add_offsets(
                Kind.DUPLICATED,
                shown(partition),
                offsets[more > 0],
                "more than once in the table",
                int(more[more > 0].sum()),
            )


_EACH = 32
"""Up to so many partitions the condition names each; above, only their smallest position."""


def beginning(ledger: Ledger, offset: str) -> str | None:
    """What holds for all rows from the first verified offsets on; None: all rows are read.

    It holds for a row without coordinates too, and where there are many partitions for more rows
    than are wanted. Each kind of warehouse skips by it the files whose statistics say that no row
    of them fulfils it. ``offset`` is the column with the offset of a record; topic and partition
    are columns of the same struct.
    """
    if ledger.since is None:
        return None
    wanted = [*_wanted(ledger, offset)]
    struct, dot, _ = offset.rpartition(".")
    unknown = [f"{struct}{dot}{name} IS NULL" for name in ("topic", "partition", "offset")]
    return " OR ".join((*unknown, *wanted))


def _wanted(ledger: Ledger, offset: str) -> Iterator[str]:
    position = ledger.since.position if ledger.since is not None else {}
    struct, dot, _ = offset.rpartition(".")
    partition, topic = f"{struct}{dot}partition", f"{struct}{dot}topic"
    numbers: dict[str, list[int]] = {}
    for name, number in position:
        numbers.setdefault(name, []).append(number)
    # What no entry knows would be wrong, so it is looked at.
    whole = all(sorted(each) == [*range(len(each))] for each in numbers.values())
    if not whole or len(position) > _EACH:
        yield f"{offset} >= {min(position.values(), default=0)}"
    else:
        for (name, number), at in sorted(position.items()):
            yield f"({topic} = '{name}' AND {partition} = {number} AND {offset} >= {at})"
        for name, known in sorted(numbers.items()):
            yield f"({topic} = '{name}' AND {partition} > {max(known)})"
    later = {name for each in ledger.effective for name in each.topics} - {*numbers}
    yield from (f"{topic} = '{name}'" for name in sorted(later))


def may_explode(subject: Subject) -> bool:
    """Whether a record of any entry may have several rows."""
    explodes = any(each.explode for each in subject.ledger.effective)
    return explodes or subject.pipeline.target.explode


class SeveralRows:
    """The rows of the entries whose records may have several, and how many there should be.

    Each row belongs to the entry whose ranges hold its offset, and the commit of an entry tells how
    many rows it wrote. So a row that is lost, or there once more, changes the number of its entry.
    Not known: which row that is, how many rows a record should have, and a row that is lost where
    another one of its entry is doubled.
    """

    def __init__(self, subject: Subject) -> None:
        entries = subject.ledger.effective
        self._entries = entries
        self._explodes = np.array([each.explode for each in entries], bool)
        self._any = may_explode(subject)
        self._found = np.zeros(len(entries), np.int64)
        self._records = 0

    def count(self, span: Span, offsets: Offsets) -> None:
        """Take rows of one partition; each offset is in a range of ``span``."""
        if self._explodes.any():
            entries = span.entries[span.index(offsets)]
            self._found += np.bincount(entries, minlength=len(self._found))

    def of(self, span: Span, offsets: Offsets) -> Flags:
        """Which offsets are those of records that may have several rows."""
        if not self._explodes.any():
            return np.zeros(len(offsets), bool)
        place = span.index(offsets)
        return self._explodes[span.entries[place]] & (place >= 0)

    def as_one(
        self, span: Span, start: int, rows: NDArray[np.int32], former: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """The rows at the offsets from ``start`` on, with those of one record as one.

        ``former``: how many ranges from before accepted changes hold an offset. There the rows
        count as theirs: a record of one of them may have had several, too.
        """
        if not self._any:
            return rows
        several = self.of(span, np.arange(start, start + len(rows), dtype=np.int64))
        self._records += int((several & (rows > 0)).sum())
        most = np.where(several | (former > 0), np.maximum(former, 1), rows)
        return np.minimum(rows, most).astype(np.int32)

    def report(self, subject: Subject) -> None:
        """Compare the rows of each entry with those that its commit wrote."""
        for number in np.flatnonzero(self._explodes).tolist():
            self._compare(subject, number)
        records = count(self._records, "record")
        line = f"how many rows each of {records} has: the target says explode"
        subject.findings.leave(Unchecked.EXPLODED, line, self._records)

    def _compare(self, subject: Subject, number: int) -> None:
        entry, found = self._entries[number], int(self._found[number])
        where = f"entry {entry.sequence}: {count(found, 'row')} in the table"
        moved = [each.partition for each in entry.ranges if each.start < each.until]
        if not moved:
            return
        not_checked = max(found, 1)  # where no row is there, all may be lost
        if any(map(subject.has_former, moved)):
            line = f"{where}, where rows from before an accepted change may be, too"
            subject.findings.leave(Unchecked.UNCOUNTED, line, not_checked)
        elif entry.written is None:
            line = f"{where}; its commit does not tell how many it wrote"
            subject.findings.leave(Unchecked.UNCOUNTED, line, not_checked)
        elif found > entry.written:
            line = f"{where}, but its commit wrote {entry.written:,}"
            subject.findings.add(Kind.DUPLICATED, line, count=found - entry.written)
        elif found < entry.written:
            self._lacking(subject, number, entry.written - found)

    def _lacking(self, subject: Subject, number: int, lack: int) -> None:
        """Rows are missing; those that accepted DELETEs may have taken are no finding."""
        entry = self._entries[number]
        gone = subject.erased.took(entry, number, lack)
        left = lack - gone
        while left and subject.erased.may_lack(number):  # which says so itself
            left -= 1
        where = f"entry {entry.sequence}: {count(lack, 'row')} of {entry.written:,} missing"
        line = f"{where}; accepted DELETEs took rows of it, nobody can tell how many"
        subject.findings.leave(Unchecked.ERASED, line, gone)
        if left:
            subject.findings.add(Kind.MISSING, where, count=left)


class RowsByOffset:
    """Offsets of all rows, and the values of those whose offset is a multiple of ``stride``.

    Window ``n`` of a partition has the ``window`` offsets from the first covered one, plus
    ``n * window``. Nothing but the windows that are taken is held in memory. ``several`` counts the
    rows of entries whose records may have several.
    """

    def __init__(
        self, subject: Subject, columns: Sequence[str], folder: Path, window: int, stride: int
    ) -> None:
        self.window = window
        self.several = SeveralRows(subject)
        self._subject = subject
        self._columns = columns
        self._stride = stride
        self._offsets = Spill(folder / "offsets")
        self._samples = Spill(folder / "samples")
        self._former = FormerRows(subject, folder / "former", window)
        self._before = 0
        self._retired = 0

    @property
    def former(self) -> int:
        """How many rows only ranges from before an accepted change of the source cover."""
        return self._former.count

    def read(self, table: Rows) -> None:
        """Read the table once; rows that no range covers are findings.

        Rows from before what is verified are left out, most of them with their files.
        """
        begins = beginning(self._subject.ledger, "_kafka.offset")
        for batch in table.batches([*self._columns, "_kafka"], begins):
            found, unknown = coordinates(batch, "_kafka")
            if unknown:
                line = f"{count(unknown, 'row')} without Kafka coordinates"
                self._subject.findings.add(Kind.UNEXPECTED, line, count=unknown)
            for each in found:
                if not self._subject.is_shared(each.partition):
                    self._keep(batch, each.partition, each.rows, each.offsets)
        self._former.check()
        findings = self._subject.findings
        line = f"{count(self._before, 'row')}: log clean-up removed their entries"
        findings.leave(Unchecked.TRIMMED, line, self._before)
        line = f"{count(self._retired, 'row')}: their pipelines are no longer configured"
        findings.leave(Unchecked.RETIRED, line, self._retired)

    def offsets(self, partition: Partition, number: int) -> Offsets:
        """The offsets that the table holds of a window, unsorted; they are forgotten here."""
        return np.frombuffer(self._offsets.take((partition, number)), np.int64)

    def samples(self, partition: Partition, number: int) -> dict[int, list[tuple[Any, ...]]]:
        """The sampled rows of a window by offset, see ``Comparison``; they are forgotten here."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        for offset, row in self._samples.take_items((partition, number)):
            found.setdefault(offset, []).append(row)
        return found

    def _keep(
        self, batch: pa.RecordBatch, partition: Partition, rows: NDArray[np.int64], offsets: Offsets
    ) -> None:
        verified = offsets >= self._subject.begins(partition)
        rows, offsets = rows[verified], offsets[verified]
        span = self._subject.coverage.spans.get(partition)
        inside = span.index(offsets) >= 0 if span else np.zeros(len(offsets), bool)
        self._outside(partition, offsets[~inside])
        if span is None:
            return
        rows, offsets = rows[inside], offsets[inside]
        self.several.count(span, offsets)
        numbers = (offsets - span.start) // self.window
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self._offsets.add((partition, number), offsets[here].tobytes())
            sampled = here & (offsets % self._stride == 0)
            if sampled.any():
                values = self._values(batch.take(pa.array(rows[sampled])))
                items = list(zip(offsets[sampled].tolist(), values, strict=True))
                self._samples.add_items((partition, number), items)

    def _values(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        stamps = row_field(batch, "_kafka", "timestamp").to_pylist()
        rows, metadata = tuples(batch, self._columns), self._subject.metadata.of_rows(batch)
        return [
            (*row, stamp, *more) for row, stamp, more in zip(rows, stamps, metadata, strict=True)
        ]

    def _outside(self, partition: Partition, offsets: Offsets) -> None:
        earlier = self._subject.coverage.former.times(partition, offsets) > 0
        self._former.add(partition, offsets[earlier])
        offsets = offsets[~earlier]
        retired = self._subject.retired
        theirs = retired.former.times(partition, offsets) > 0
        if partition in retired.spans:
            theirs |= retired.spans[partition].index(offsets) >= 0
        self._retired += int(theirs.sum())
        offsets = offsets[~theirs]
        before = self._subject.before_ledger
        known = [each for each in offsets.tolist() if not before(partition, each)]
        self._before += len(offsets) - len(known)
        what = "in the table, but in no range of the ledger"
        self._subject.findings.add_offsets(Kind.UNEXPECTED, shown(partition), known, what)
