"""Tables with a row for each record: every visible record is there or in quarantine, once.

Memory: at most 16 partitions are read at once, each through a window of ``Bounds.window`` offsets.
It takes about 5 bytes per offset (80 MiB for all at the default of 2^20) and the sampled rows of
that window; a quarantined record takes 17 bytes. The table's offsets wait on disk, 8 bytes a row.
So a topic of any size can be verified.

The coordinates of every row are compared. Values are compared for every row up to ``Bounds.values``
offsets, above that for every 101st offset. Where all are compared of any number, the windows have
2^14 offsets, so that at most 262,144 rows are in memory; so it is, too, once a change of the
source was accepted.

Of rows that the pipeline's own code made, the values are not compared: see ``decoding``. Where it
may make several of one record, their number is compared by entry: see ``rows_by_offset``. Then the
offsets of a window take 8 bytes a row in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verification.formats.reader import CannotTell, Undecodable
from rivermouth.verification.ledger.coverage import Flags, Offsets
from rivermouth.verification.ledger.entry import shown
from rivermouth.verification.proofs.decoding import Comparison, EntryReaders, LeftOut, MadeReaders
from rivermouth.verification.proofs.proof import Bounds, Stored, Workspace
from rivermouth.verification.proofs.replay import Seen, replay
from rivermouth.verification.proofs.rows_by_offset import RowsByOffset
from rivermouth.verification.proofs.windows import Window, by_window, stride_of
from rivermouth.verification.result import Kind, Unchecked, count
from rivermouth.verification.subject import Subject


@dataclass
class Appended:
    """What the windows of a table share.

    ``former`` counts rows that a range from before an accepted change of the source explains,
    ``removed`` those that compaction may explain.
    """

    subject: Subject
    stored: Stored
    rows: RowsByOffset
    comparison: Comparison
    readers: MadeReaders
    left_out: LeftOut
    former: int = 0
    removed: int = 0


class AppendCheck:
    """Compares what Kafka shows of a window with the table's rows and the quarantine."""

    def __init__(self, shared: Appended, window: Window) -> None:
        self._shared = shared
        self._subject = shared.subject
        self._window = window
        self._partition, self._start = window.partition, window.start
        self._quarantined = shared.stored.quarantined(window.partition)
        self._visible = np.zeros(window.size, bool)
        rows = shared.rows.offsets(window.partition, window.number) - window.start
        self._rows = np.bincount(rows, minlength=window.size).astype(np.int32)
        self._samples = shared.rows.samples(window.partition, window.number)

    def see(self, seen: Seen) -> None:
        """See ``WindowCheck``."""
        due = ~seen.skipped  # a row at another offset is a former one, or ``close`` finds it
        self._visible[seen.offsets[due] - self._start] = True
        if self._samples:
            messages = [each for each, is_due in zip(seen.messages, due, strict=True) if is_due]
            self._compare(seen.offsets[due], messages)

    def close(self) -> None:
        """See ``WindowCheck``: with what the table and quarantine have."""
        span, former = self._window.span, self._former()
        self._rows = self._shared.rows.several.as_one(span, self._start, self._rows, former)
        found = self._rows.copy()
        bad = self._quarantined.within(self._start, self._window.until) - self._start
        found[np.unique(bad)] += 1
        twice = np.flatnonzero(found > 1 + former)
        number = int((found[twice] - 1 - former[twice]).sum())
        self._report(Kind.DUPLICATED, "more than once in table and quarantine", twice, number)
        missing = np.flatnonzero(self._visible & (found == 0))
        missing = self._without_erased(missing, found > former)
        offsets = missing + self._start
        entries = self._window.entries(offsets)
        missing = missing[self._shared.left_out.without(self._partition, offsets, entries)]
        self._report(Kind.MISSING, "neither in the table nor in quarantine", missing)
        if self._subject.has_former(self._partition):
            more = found - self._visible
            counted = (more > 0) & self._readable()
            self._shared.former += int(np.minimum(more, former)[counted].sum())
        unseen = np.flatnonzero((self._rows > former) & ~self._visible)
        if len(unseen):
            unseen = self._unexplained(unseen)
        self._report(Kind.UNEXPECTED, "in the table, but Kafka shows no such record", unseen)

    def _without_erased(self, missing: NDArray[np.intp], there: Flags) -> NDArray[np.intp]:
        """Without the rows that are gone on purpose; one that is named but there is a finding.

        ``there``: where there is a row that no earlier range explains.
        """
        erased, span, several = self._subject.erased, self._window.span, self._shared.rows.several
        if erased.any_named():
            wrong = np.flatnonzero(there)
            wrong = wrong[self._named(wrong + self._start)]
            wrong = wrong[~several.of(span, wrong + self._start)]
            what = "the ledger says that it was deleted on purpose, but it is there"
            self._report(Kind.UNEXPECTED, what, wrong)
            named = self._named(missing + self._start)
            erased.rows += int(named.sum())
            missing = missing[~named]
        single = ~several.of(span, missing + self._start)
        lacks = np.zeros(len(missing), bool)  # the rows of several are compared by their number
        entries = self._window.entries(missing[single] + self._start)
        lacks[single] = erased.may_lack_of(entries)
        return missing[~lacks]

    def _named(self, offsets: Offsets) -> Flags:
        """Which offsets are those of rows that are named as deleted on purpose."""
        entries = self._window.entries(offsets)
        return self._subject.erased.mask(self._partition, offsets, entries)

    def _former(self) -> Offsets:
        """How many rows ranges from before accepted changes may have left at each offset."""
        if not self._subject.has_former(self._partition):
            return np.broadcast_to(np.int64(0), self._window.size)
        times = self._subject.coverage.former.times(self._partition, self._window.offsets())
        return times + self._subject.removed_changes

    def _readable(self) -> Flags:
        start, until = self._subject.readable[self._partition]
        offsets = self._window.offsets()
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
        self._shared.removed += len(unseen) - int(wrong.sum())
        return unseen[wrong]

    def _report(
        self, kind: Kind, what: str, found: NDArray[np.intp], number: int | None = None
    ) -> None:
        offsets = found + self._start
        self._subject.findings.add_offsets(kind, shown(self._partition), offsets, what, number)

    def _compare(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Compare the values of the records whose rows were sampled."""
        entries = self._window.entries(offsets)
        ambiguous = self._bad_beside_former(offsets)
        gone = {*offsets[self._named(offsets)].tolist()}
        for offset, entry, each in zip(offsets.tolist(), entries.tolist(), messages, strict=True):
            rows = self._samples.get(offset)
            if rows is None or offset in ambiguous:
                continue  # the row is not that of a bad record
            where = f"{shown(self._partition)}@{offset}"
            try:
                lines = [self._differences(entry, each, row) for row in rows]
            except Undecodable as fault:
                lines = [f"in the table, but verify cannot decode its record: {fault}"]
            found = next((line for line in lines if line), "")
            explained = "" in lines or offset in gone
            if found and explained and self._subject.may_be_former(self._partition, offset):
                continue  # the others are from before a change; this record's is there, or deleted
            if found:
                self._subject.findings.add(Kind.DIFFERENT, f"{where}: {found}")

    def _differences(self, entry: int, message: Message, row: Sequence[Any]) -> str:
        readers = self._shared.readers
        due = (message.timestamp()[1] * 1000, *self._subject.metadata.of_record(entry, message))
        comparison = self._shared.comparison
        try:
            value = readers.value(entry, message)
        except CannotTell:
            return comparison.without_value(due, row)
        return comparison.differences(readers.of(entry), value, due, row, made=readers.made(entry))

    def _bad_beside_former(self, offsets: Offsets) -> set[int]:
        """The offsets of bad records at which a row may be from before an accepted change."""
        if not self._subject.has_former(self._partition):
            return set()
        bad = offsets[self._quarantined.mask(offsets)].tolist()
        return {each for each in bad if self._subject.may_be_former(self._partition, each)}


def verify_append(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``append``."""
    made = bool(subject.pipeline.made_by)  # the values are not those of the records
    columns = [] if made else [each.name for each in subject.pipeline.columns]
    stored.require([*columns, "_kafka"])
    metadata, findings = subject.metadata, subject.findings
    metadata.require(stored.table.schema)
    bounds = workspace.bounds
    if any(map(subject.has_former, subject.coverage)):
        # Where a row of a former record stands, only its values tell that the due one is missing.
        bounds = Bounds.of_every_value()
    stride = stride_of(subject, bounds)
    rows = RowsByOffset(subject, columns, workspace.folder, bounds.window, stride)
    rows.read(stored.table)
    shared = Appended(
        subject,
        stored,
        rows,
        Comparison(columns, metadata.fields),
        MadeReaders(subject, EntryReaders(subject, stored.table.schema, columns)),
        LeftOut(subject.ledger.effective),
    )
    replayed = replay(subject, stored, workspace.progress)
    by_window(replayed, subject.coverage, bounds.window, partial(AppendCheck, shared))
    line = f"{count(shared.removed, 'row')}: Kafka has no such record, as after compaction"
    findings.leave(Unchecked.COMPACTED, line, shared.removed)
    former = rows.former + shared.former
    line = f"{count(former, 'row')}: from before an accepted change of the source"
    findings.leave(Unchecked.FORMER, line, former)
    shared.left_out.report(findings)
    rows.several.report(subject)
    shared.comparison.report(findings)
