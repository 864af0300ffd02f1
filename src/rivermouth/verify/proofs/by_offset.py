"""The rows of a table on disk, by partition and by window of offsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.former_rows import FormerRows
from rivermouth.verify.proofs.several_rows import SeveralRows
from rivermouth.verify.proofs.skipping import beginning
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import PROBLEM_LINES, Kind, Unchecked, count
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.batches import coordinates, field, tuples
from rivermouth.verify.tables.ports import Rows


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
            names = ("topic", "partition", "offset")
            found, unknown = coordinates(*(field(batch, "_kafka", name) for name in names))
            if unknown:
                line = f"{count(unknown, 'row')} without Kafka coordinates"
                self._subject.findings.add(Kind.UNEXPECTED, line, count=unknown)
            for each in found:
                if not self._subject.is_shared(each.partition):
                    self._keep(batch, each.partition, each.rows, each.offsets)
        self._former.check()
        findings = self._subject.findings
        if self._before:
            line = f"{count(self._before, 'row')}: log clean-up removed their entries"
            findings.leave(Unchecked.TRIMMED, line, self._before)
        if self._retired:
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
        stamps = field(batch, "_kafka", "timestamp").to_pylist()
        rows, told = tuples(batch, self._columns), self._subject.metadata.of_rows(batch)
        return [(*row, stamp, *more) for row, stamp, more in zip(rows, stamps, told, strict=True)]

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
        lines = [
            f"{shown(partition)}@{each}: in the table, but in no range of the ledger"
            for each in known[:PROBLEM_LINES]
        ]
        self._subject.findings.add(Kind.UNEXPECTED, *lines, count=len(known))
