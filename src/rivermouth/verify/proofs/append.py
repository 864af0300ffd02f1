"""Tables with a row for each record: every visible record is there or in quarantine, once.

Memory: at most 16 partitions are read at once, each through a window of ``Bounds.window`` offsets
that takes about 5 bytes per offset (80 MiB for all at the default of 2^20) and the sampled rows of
that window; a quarantined record takes 17 bytes. The table's offsets wait on disk, 8 bytes a row.
So a topic of any size can be verified.

The coordinates of every row are compared. Values are compared for every row up to ``Bounds.values``
offsets, above that for every 101st offset. Where all are compared of any number, the windows have
2^14 offsets, so that at most 262,144 rows are in memory; so it is, too, once a change of the
source was accepted.

Of rows that the pipeline's own code made, the values are not compared: see ``made_rows``. Where it
may make several of one record, their number is compared by entry: see ``several_rows``. Then the
offsets of a window take 8 bytes a row in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.formats.reader import Undecodable
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.decoding import Comparison, EntryReaders, LeftOut, MadeReaders
from rivermouth.verify.proofs.proof import Bounds, Stored, Workspace
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.replay import replay
from rivermouth.verify.proofs.rows_by_offset import RowsByOffset
from rivermouth.verify.result import PROBLEM_LINES, Kind, Unchecked, count
from rivermouth.verify.subject import Subject


class PartitionCheck:
    """Compares what Kafka shows of a partition with the table's rows and the quarantine."""

    def __init__(
        self,
        subject: Subject,
        partition: Partition,
        rows: RowsByOffset,
        quarantined: Quarantined | None,
        comparison: Comparison,
        readers: MadeReaders,
        left_out: LeftOut,
    ) -> None:
        self._subject = subject
        self._partition = partition
        self._by_offset = rows
        self._quarantined = quarantined
        self._comparison = comparison
        self._readers = readers
        self._left_out = left_out
        self._span = subject.coverage.spans[partition]
        self.former = 0
        """Rows that a range from before an accepted change of the source explains."""
        self._compacted_away = 0
        self._number = -1
        self._next()

    def see(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Take visible records, ascending."""
        numbers = (offsets - self._span.start) // self._by_offset.window
        for number in np.unique(numbers).tolist():
            while self._number < number:
                self._close()
                self._next()
            first, last = np.searchsorted(numbers, [number, number + 1])
            self._visible[offsets[first:last] - self._start] = True
            if self._samples:
                self._compare(offsets[first:last], messages[first:last])

    def finish(self) -> int:
        """Check what is left; returns how many rows compaction may explain."""
        self._close()
        while self._start + self._by_offset.window < self._span.until:
            self._next()
            self._close()
        return self._compacted_away

    def _next(self) -> None:
        self._number += 1
        self._start = self._span.start + self._number * self._by_offset.window
        size = min(self._by_offset.window, self._span.until - self._start)
        self._visible = np.zeros(size, bool)
        rows = self._by_offset.offsets(self._partition, self._number) - self._start
        self._rows = np.bincount(rows, minlength=size).astype(np.int32)
        self._samples = self._by_offset.samples(self._partition, self._number)

    def _close(self) -> None:
        """Compare what the window shows with what the table and quarantine hold."""
        former = self._former(len(self._rows))
        self._rows = self._by_offset.several.as_one(self._span, self._start, self._rows, former)
        held = self._rows.copy()
        if self._quarantined is not None:
            bad = self._quarantined.within(self._start, self._start + len(held)) - self._start
            held[np.unique(bad)] += 1
        twice = np.flatnonzero(held > 1 + former)
        number = int((held[twice] - 1 - former[twice]).sum())
        self._report(Kind.DUPLICATED, "more than once in table and quarantine", twice, number)
        missing = np.flatnonzero(self._visible & (held == 0))
        missing = self._without_erased(missing, held > former)
        offsets = missing + self._start
        missing = missing[self._left_out.without(self._partition, offsets, self._entries(offsets))]
        self._report(Kind.MISSING, "neither in the table nor in quarantine", missing, len(missing))
        if self._subject.has_former(self._partition):
            more = held - self._visible
            counted = (more > 0) & self._readable(len(held))
            self.former += int(np.minimum(more, former)[counted].sum())
        unseen = np.flatnonzero((self._rows > former) & ~self._visible)
        if len(unseen):
            unseen = self._unexplained(unseen)
        what = "in the table, but Kafka shows no such record"
        self._report(Kind.UNEXPECTED, what, unseen, len(unseen))

    def _without_erased(
        self, missing: NDArray[np.intp], held: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Without the rows that are gone on purpose; one that is named but there is a finding.

        ``held``: there is a row that no earlier range explains.
        """
        erased = self._subject.erased
        if erased.any_named():
            there = np.flatnonzero(held)
            there = there[self._named(there + self._start)]
            there = there[~self._by_offset.several.of(self._span, there + self._start)]
            what = "the ledger says that it was deleted on purpose, but it is there"
            self._report(Kind.UNEXPECTED, what, there, len(there))
            named = self._named(missing + self._start)
            erased.rows += int(named.sum())
            missing = missing[~named]
        several = self._by_offset.several.of(self._span, missing + self._start)
        lacks = np.zeros(len(missing), bool)  # the rows of several are compared by their number
        lacks[~several] = erased.may_lack_of(self._entries(missing[~several] + self._start))
        return missing[~lacks]

    def _named(self, offsets: Offsets) -> NDArray[np.bool_]:
        """Which offsets are those of rows that are named as deleted on purpose."""
        return self._subject.erased.mask(self._partition, offsets, self._entries(offsets))

    def _entries(self, offsets: Offsets) -> Offsets:
        """The index of the entry that covers each offset; where none does, that of any."""
        return self._span.entries[self._span.index(offsets)]

    def _former(self, size: int) -> NDArray[np.int64]:
        """How many rows ranges from before accepted changes may have left at each offset."""
        if not self._subject.has_former(self._partition):
            return np.broadcast_to(np.int64(0), size)
        offsets = np.arange(self._start, self._start + size, dtype=np.int64)
        times = self._subject.coverage.former.times(self._partition, offsets)
        return times + self._subject.removed_changes

    def _readable(self, size: int) -> NDArray[np.bool_]:
        start, until = self._subject.readable[self._partition]
        offsets = np.arange(self._start, self._start + size)
        return (offsets >= start) & (offsets < until)

    def _unexplained(self, unseen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Without the rows whose records expired or may have been removed by compaction."""
        start, until = self._subject.readable[self._partition]
        source = self._subject.source
        unseen = unseen[(unseen + self._start >= start) & (unseen + self._start < until)]
        if len(unseen):  # more may have expired since the partition was read
            first = source.first_offsets([self._partition])[self._partition]
            unseen = unseen[unseen + self._start >= first]
        wrong = self._subject.unexplained(self._partition, unseen + self._start)
        self._compacted_away += len(unseen) - int(wrong.sum())
        return unseen[wrong]

    def _report(self, kind: Kind, what: str, found: NDArray[np.intp], number: int) -> None:
        offsets = (found[:PROBLEM_LINES] + self._start).tolist()
        lines = [f"{shown(self._partition)}@{offset}: {what}" for offset in offsets]
        self._subject.findings.add(kind, *lines, count=number)

    def _compare(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Compare the values of the records whose rows were sampled."""
        entries = self._entries(offsets)
        beside = self._bad_beside_former(offsets)
        named = self._subject.erased.mask(self._partition, offsets, entries)
        gone = {*offsets[named].tolist()}
        for offset, entry, each in zip(offsets.tolist(), entries.tolist(), messages, strict=True):
            rows = self._samples.get(offset)
            if rows is None or offset in beside:
                continue  # the row is not that of a bad record
            where = f"{shown(self._partition)}@{offset}"
            read = self._readers.of(entry)
            due = (each.timestamp()[1] * 1000, *self._subject.metadata.of_record(entry, each))
            try:
                told = [self._comparison.differences(read, each.value(), due, row) for row in rows]
            except Undecodable as fault:
                told = [f"in the table, but verify cannot decode its record: {fault}"]
            found = next((line for line in told if line), "")
            explained = "" in told or offset in gone
            if found and explained and self._subject.may_be_former(self._partition, offset):
                continue  # the others are from before a change; this record's is there, or deleted
            if found:
                self._subject.findings.add(Kind.DIFFERENT, f"{where}: {found}")

    def _bad_beside_former(self, offsets: Offsets) -> set[int]:
        """The offsets of bad records at which a row may be from before an accepted change."""
        if self._quarantined is None or not self._subject.has_former(self._partition):
            return set()
        bad = offsets[self._quarantined.mask(offsets)].tolist()
        return {each for each in bad if self._subject.may_be_former(self._partition, each)}


_STRIDE = 101


def verify_append(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``append``."""
    made = bool(subject.pipeline.made_by)  # the values are not those of the records
    columns = [] if made else [each.name for each in subject.pipeline.columns]
    stored.require([*columns, "_kafka"])
    metadata = subject.metadata
    metadata.require(stored.table.schema)
    comparison = Comparison(columns, metadata.fields)
    plain = EntryReaders(subject, stored.table.schema, columns)
    readers, left_out = MadeReaders(subject, plain), LeftOut(subject.ledger.effective)
    total, bounds = subject.coverage.total(), workspace.bounds
    if any(map(subject.has_former, subject.coverage)):
        # Where a row of a former record stands, only its values tell that the due one is missing.
        bounds = Bounds.of_every_value()
    stride = 1 if total <= bounds.values else _STRIDE
    if stride > 1:
        line = f"values at offsets that are not a multiple of {stride}"
        subject.findings.leave(Unchecked.SAMPLED, line, total - total // stride)
    rows = RowsByOffset(subject, columns, workspace.folder, bounds.window, stride)
    rows.read(stored.table)
    checks: dict[Partition, PartitionCheck] = {}
    removed, former = 0, rows.former
    for seen in replay(subject, stored, workspace.progress):
        each = seen.partition
        if each not in checks:
            quarantined = stored.quarantine.get(each)
            checks[each] = PartitionCheck(
                subject, each, rows, quarantined, comparison, readers, left_out
            )
        if seen.messages:
            checks[each].see(seen.offsets, seen.messages)
        if seen.done:
            check = checks.pop(each)
            removed += check.finish()
            former += check.former
    if removed:
        line = f"{count(removed, 'row')}: Kafka has no such record, as after compaction"
        subject.findings.leave(Unchecked.COMPACTED, line, removed)
    if former:
        line = f"{count(former, 'row')}: from before an accepted change of the source"
        subject.findings.leave(Unchecked.FORMER, line, former)
    left_out.report(subject.findings)
    rows.several.report(subject)
    comparison.report(subject.findings)
