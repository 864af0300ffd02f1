"""Pipelines that send: every good record is in the topic, as often as its entry promises.

What is sent before the commit (``at-least-once``) must be there, and may be there again. What is
sent after it (``at-most-once``) may lack, and may not be there twice. What a function of the user
has got, only the user can tell.

Memory: at most 16 partitions are read at once, each through a window of ``Bounds.window`` offsets.
Values are compared as those of an append are, see ``append``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.registry.formats import FORMATS
from rivermouth.registry.references import resolve
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Undecodable
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.compare import decoded
from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.proofs.proof import Stored, Workspace
from rivermouth.verify.proofs.replay import Seen, replay
from rivermouth.verify.proofs.sent_records import UNREAD, SentRecords, mark
from rivermouth.verify.result import PROBLEM_LINES, Kind, Unchecked, count
from rivermouth.verify.subject import Subject

_STRIDE = 101
_AT_MOST_ONCE = "at-most-once"


def verify_sent(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``send``."""
    topics = {each.config.get("kafka") for each in subject.ledger.effective}
    named = [each for each in topics if isinstance(each, str)]
    if not named:
        _count_only(subject, stored, workspace)
        return
    columns = [each.name for each in subject.pipeline.columns]
    stored.require(columns)
    total, bounds = subject.coverage.total(), workspace.bounds
    stride = 1 if total <= bounds.values else _STRIDE
    if stride > 1:
        line = f"values at offsets that are not a multiple of {stride}"
        subject.findings.leave(Unchecked.SAMPLED, line, total - total // stride)
    sent = SentRecords(subject, named, workspace.folder, bounds.window, stride)
    sent.read(resolve(FORMATS.by_name["json"].reader)(stored.table.schema, columns))
    readers = EntryReaders(subject, stored.table.schema, columns)
    checks: dict[Partition, _SentCheck] = {}
    subject.findings.repeated = 0
    for seen in replay(subject, stored, workspace.progress):
        if seen.partition not in checks:
            checks[seen.partition] = _SentCheck(subject, seen.partition, sent, readers, stride)
        checks[seen.partition].see(seen)
        if seen.done:
            checks.pop(seen.partition).finish()


def _count_only(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    good = sum(int(seen.good.sum()) for seen in replay(subject, stored, workspace.progress))
    if good:
        line = f"{count(good, 'record')}: only the function knows what became of them"
        subject.findings.leave(Unchecked.SINK, line, good)


class _SentCheck:
    """Compares one partition with what was sent of it, window by window."""

    def __init__(
        self,
        subject: Subject,
        partition: Partition,
        sent: SentRecords,
        readers: EntryReaders,
        stride: int,
    ) -> None:
        self._subject = subject
        self._partition = partition
        self._sent = sent
        self._readers = readers
        self._stride = stride
        self._span = subject.coverage.spans[partition]
        self._number = -1
        self._next()

    def see(self, seen: Seen) -> None:
        """Take visible records, ascending."""
        numbers = (seen.offsets - self._span.start) // self._sent.window
        for number in np.unique(numbers).tolist():
            while self._number < number:
                self._close()
                self._next()
            here = np.flatnonzero((numbers == number) & seen.good)
            offsets = seen.offsets[here]
            self._due[offsets - self._start] = True
            self._compare(offsets, [seen.messages[each] for each in here.tolist()])

    def finish(self) -> None:
        """Check what is left."""
        self._close()
        while self._start + self._sent.window < self._span.until:
            self._next()
            self._close()

    def _next(self) -> None:
        self._number += 1
        self._start = self._span.start + self._number * self._sent.window
        size = min(self._sent.window, self._span.until - self._start)
        self._due = np.zeros(size, bool)
        offsets, marks = self._sent.take(self._partition, self._number)
        order = np.argsort(offsets, kind="stable")
        self._offsets, self._marks = offsets[order], marks[order]
        self._copies = np.bincount(offsets - self._start, minlength=size)

    def _close(self) -> None:
        subject = self._subject
        offsets = np.arange(self._start, self._start + len(self._due), dtype=np.int64)
        former = subject.coverage.former.times(self._partition, offsets) + subject.removed_changes
        once = self._at_most_once(offsets)
        missing = self._due & (self._copies == 0)
        may_lack = missing & (once | (not self._sent.whole))
        if may_lack.any():
            number = int(may_lack.sum())
            line = f"{shown(self._partition)}: {count(number, 'record')} not in the sink"
            subject.findings.leave(Unchecked.NOT_SENT, line, number)
        self._report(Kind.MISSING, "not in the sink", missing & ~may_lack)
        more = np.maximum(self._copies - 1 - former, 0)
        twice = (more > 0) & once
        self._report(Kind.DUPLICATED, "more than once in the sink", twice, int(more[twice].sum()))
        repeated = int(more[~once].sum())
        subject.findings.repeated = (subject.findings.repeated or 0) + repeated
        unseen = np.flatnonzero((self._copies > former) & ~self._due)
        known = [each for each in unseen.tolist() if not self._unknown(each + self._start)]
        what = "in the sink, but Kafka shows no such good record"
        found = np.zeros(len(self._due), bool)
        found[known] = True
        self._report(Kind.UNEXPECTED, what, found)

    def _unknown(self, offset: int) -> bool:
        """Whether nobody can tell any more whether there was such a record."""
        compacted = self._partition[0] in self._subject.compacted
        return compacted or self._subject.not_verifiable(self._partition, offset)

    def _at_most_once(self, offsets: Offsets) -> NDArray[np.bool_]:
        """Whether the entry of each offset says so."""
        entries = self._subject.ledger.effective
        numbers = self._span.entries[self._span.index(offsets)]
        once = [
            number
            for number in np.unique(numbers).tolist()
            if entries[number].config.get("delivery") == _AT_MOST_ONCE
        ]
        return np.isin(numbers, once)

    def _compare(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Compare the values of the records whose values were read in the sink."""
        entries = self._span.entries[self._span.index(offsets)].tolist()
        for offset, entry, each in zip(offsets.tolist(), entries, messages, strict=True):
            if offset % self._stride or self._subject.may_be_former(self._partition, offset):
                continue
            first, last = np.searchsorted(self._offsets, [offset, offset + 1])
            marks = self._marks[first:last]
            try:
                values = decoded(self._readers.of(entry), each.value())
            except (Undecodable, CannotTell):
                continue
            if any(value is NOT_VERIFIABLE for value in values):
                continue
            if ((marks != UNREAD) & (marks != mark(values))).any():
                line = f"{shown(self._partition)}@{offset}: other values in the sink"
                self._subject.findings.add(Kind.DIFFERENT, line)

    def _report(
        self, kind: Kind, what: str, found: NDArray[np.bool_], number: int | None = None
    ) -> None:
        offsets = np.flatnonzero(found)
        lines = [
            f"{shown(self._partition)}@{offset + self._start}: {what}"
            for offset in offsets[:PROBLEM_LINES].tolist()
        ]
        self._subject.findings.add(kind, *lines, count=len(offsets) if number is None else number)
