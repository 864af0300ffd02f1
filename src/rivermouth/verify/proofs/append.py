"""Append tables: every visible record is in the table or in quarantine, once, and no other.

Memory: at most 16 partitions are read at once, each through a window of ``window`` offsets
that takes about 5 bytes per offset (80 MiB at the default of 2^20) and the sampled rows of
that window; a quarantined record takes 17 bytes; the table's offsets wait on disk, 8 bytes
a row. So a topic of any size can be verified.

Coordinates are compared for every row. Values are compared for every row up to 200,000
offsets, else for every 101st offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.formats.json import RowDecoder, differences, parse_object
from rivermouth.verify.formats.text import Undecodable
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Place, shown
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.replay import Progress, replay
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import PROBLEM_LINES, Kind
from rivermouth.verify.subject import Subject, count
from rivermouth.verify.tables.batches import Rows, coordinates, field, tuples

WINDOW = 1 << 20
_ALL_VALUES = 200_000
_STRIDE = 101


def verify_append(
    subject: Subject,
    table: Rows,
    quarantine: Mapping[Place, Quarantined],
    folder: Path,
    progress: Progress,
    window: int = WINDOW,
) -> None:
    """Compare the table with Kafka; what differs goes into the findings of ``subject``."""
    stride = 1 if subject.coverage.total() <= _ALL_VALUES else _STRIDE
    if stride > 1:
        subject.findings.unchecked.append(f"values of offsets that are no multiple of {stride}")
    held = _TableSide(subject, folder, window, stride)
    held.read(table)
    checks: dict[Place, _PartitionCheck] = {}
    gone = 0
    for seen in replay(subject, quarantine, progress):
        place = seen.place
        if place not in checks:
            checks[place] = _PartitionCheck(subject, place, held, quarantine.get(place))
        if seen.messages:
            checks[place].see(seen.offsets, seen.messages)
        if seen.done:
            gone += checks.pop(place).finish()
    if gone:
        subject.findings.unchecked.append(f"{count(gone, 'row')} whose records are compacted away")


class _TableSide:
    """The table's rows, sorted onto disk by partition and window."""

    def __init__(self, subject: Subject, folder: Path, window: int, stride: int) -> None:
        self.subject = subject
        self.window = window
        self.columns = [each.name for each in subject.pipeline.columns]
        self.decoder: RowDecoder
        self._stride = stride
        self._offsets = Spill(folder / "offsets")
        self._samples = Spill(folder / "samples")
        self._before = 0

    def read(self, table: Rows) -> None:
        """Read the whole table once; rows that no range covers are findings."""
        self.decoder = RowDecoder(table.schema, self.columns)
        for batch in table.batches([*self.columns, "_kafka"]):
            names = ("topic", "partition", "offset")
            found, strangers = coordinates(*(field(batch, "_kafka", name) for name in names))
            if strangers:
                line = f"{count(strangers, 'row')} without Kafka coordinates"
                self.subject.findings.add(Kind.UNEXPECTED, line, count=strangers)
            for each in found:
                if each.place[0] not in self.subject.neighbours:
                    self._keep(batch, each.place, each.rows, each.offsets)
        if self._before:
            line = f"{count(self._before, 'row')} of entries that log clean-up removed"
            self.subject.findings.unchecked.append(line)

    def offsets(self, place: Place, number: int) -> Offsets:
        """The offsets that the table holds of a window, unsorted."""
        return np.frombuffer(self._offsets.take((place, number)), np.int64)

    def samples(self, place: Place, number: int) -> dict[int, tuple[Any, ...]]:
        """The sampled rows of a window by offset: values, and the timestamp."""
        return dict(self._samples.take_items((place, number)))

    def _keep(
        self, batch: pa.RecordBatch, place: Place, rows: NDArray[np.int64], offsets: Offsets
    ) -> None:
        span = self.subject.coverage.spans.get(place)
        inside = span.index(offsets) >= 0 if span else np.zeros(len(offsets), bool)
        self._outside(place, offsets[~inside])
        if span is None:
            return
        rows, offsets = rows[inside], offsets[inside]
        numbers = (offsets - span.start) // self.window
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self._offsets.add((place, number), offsets[here].tobytes())
            sampled = here & (offsets % self._stride == 0)
            if sampled.any():
                values = self._values(batch.take(pa.array(rows[sampled])))
                items = list(zip(offsets[sampled].tolist(), values, strict=True))
                self._samples.add_items((place, number), items)

    def _values(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        stamps = field(batch, "_kafka", "timestamp").to_pylist()
        rows = tuples(batch, self.columns)
        return [(*row, stamp) for row, stamp in zip(rows, stamps, strict=True)]

    def _outside(self, place: Place, offsets: Offsets) -> None:
        known = [each for each in offsets.tolist() if not self.subject.before_ledger(place, each)]
        self._before += len(offsets) - len(known)
        lines = [
            f"{shown(place)}@{each}: in the table, in no range" for each in known[:PROBLEM_LINES]
        ]
        self.subject.findings.add(Kind.UNEXPECTED, *lines, count=len(known))


class _PartitionCheck:
    """Goes through one partition, window by window, as its records come in."""

    def __init__(
        self, subject: Subject, place: Place, held: _TableSide, quarantined: Quarantined | None
    ) -> None:
        self._compacted_away = 0
        self._subject = subject
        self._place = place
        self._held = held
        self._quarantined = quarantined
        self._span = subject.coverage.spans[place]
        self._number = -1
        self._next()

    def see(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Take visible records, ascending."""
        numbers = (offsets - self._span.start) // self._held.window
        for number in np.unique(numbers).tolist():
            while self._number < number:
                self._close()
                self._next()
            first, last = np.searchsorted(numbers, [number, number + 1])
            self._visible[offsets[first:last] - self._base] = True
            if self._samples:
                for each in messages[first:last]:
                    row = self._samples.get(int(each.offset() or 0))
                    if row is not None:
                        self._compare(each, row)

    def finish(self) -> int:
        """Judge what is left, at the end; return how many rows compaction may explain."""
        self._close()
        while self._base + self._held.window < self._span.until:
            self._next()
            self._close()
        return self._compacted_away

    def _next(self) -> None:
        self._number += 1
        self._base = self._span.start + self._number * self._held.window
        size = min(self._held.window, self._span.until - self._base)
        self._visible = np.zeros(size, bool)
        rows = self._held.offsets(self._place, self._number) - self._base
        self._rows = np.bincount(rows, minlength=size).astype(np.int32)
        self._samples = self._held.samples(self._place, self._number)

    def _close(self) -> None:
        """Compare what the window shows with what the table and quarantine hold."""
        held = self._rows.copy()
        if self._quarantined is not None:
            bad = self._quarantined.within(self._base, self._base + len(held)) - self._base
            held[np.unique(bad)] += 1
        twice = np.flatnonzero(held > 1)
        self._report(Kind.DUPLICATED, "more than once", twice, int((held[twice] - 1).sum()))
        missing = np.flatnonzero(self._visible & (held == 0))
        self._report(Kind.MISSING, "neither in the table nor in quarantine", missing, len(missing))
        phantom = np.flatnonzero((self._rows > 0) & ~self._visible)
        if len(phantom):
            phantom = self._unexplained(phantom)
        what = "in the table, but Kafka shows no such record"
        self._report(Kind.UNEXPECTED, what, phantom, len(phantom))

    def _unexplained(self, phantom: NDArray[np.intp]) -> NDArray[np.intp]:
        """Leave out what has expired and what compaction may have removed."""
        start, until = self._subject.readable[self._place]
        phantom = phantom[(phantom + self._base >= start) & (phantom + self._base < until)]
        if len(phantom):  # retention may have moved on since the partition was read
            low = self._subject.source.lows([self._place])[self._place]
            phantom = phantom[phantom + self._base >= low]
        if self._place[0] not in self._subject.compacted:
            return phantom
        asked = phantom[:PROBLEM_LINES].tolist()
        holds = self._subject.source.holds
        aborted = [each for each in asked if holds(self._place, self._base + each)]
        self._compacted_away += len(phantom) - len(aborted)
        return np.array(aborted, np.intp)

    def _report(self, kind: Kind, what: str, found: NDArray[np.intp], number: int) -> None:
        offsets = (found[:PROBLEM_LINES] + self._base).tolist()
        lines = [f"{shown(self._place)}@{offset}: {what}" for offset in offsets]
        self._subject.findings.add(kind, *lines, count=number)

    def _compare(self, message: Message, row: tuple[Any, ...]) -> None:
        where = f"{shown(self._place)}@{message.offset()}"
        try:
            expected = self._held.decoder.row(parse_object(message.value() or b""))
        except Undecodable as fault:
            line = f"{where}: in the table, yet it does not decode here: {fault}"
            self._subject.findings.add(Kind.DIFFERENT, line)
            return
        differing = differences(
            [*self._held.columns, "_kafka.timestamp"],
            (*expected, message.timestamp()[1] * 1000),
            row,
        )
        if differing:
            self._subject.findings.add(Kind.DIFFERENT, f"{where}: {differing}")
