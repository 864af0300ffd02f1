"""Pipelines that send: every good record is in the topic, as often as its entry promises.

What is sent before the commit (``at-least-once``) must be there, and may be there again. What is
sent after it (``at-most-once``) may lack, and may not be there twice. What a function of the user
has got, only the user can tell.

Memory: at most 16 partitions are read at once, each through a window of at most 131,072 offsets.
Values are compared as those of an append are, see ``append``; not those that own code made. What it
left out may lack: its entry tells how many records those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from confluent_kafka import Message

from rivermouth.config.formats import SENT
from rivermouth.config.registry import resolve
from rivermouth.verification.formats.reader import CannotTell, Undecodable
from rivermouth.verification.ledger.coverage import Flags, Offsets
from rivermouth.verification.ledger.entry import shown
from rivermouth.verification.proofs.decoding import EntryReaders, decoded
from rivermouth.verification.proofs.proof import Stored, Workspace
from rivermouth.verification.proofs.replay import Seen, replay
from rivermouth.verification.proofs.sent_records import (
    BY_ROW,
    FUNCTION,
    UNREAD,
    UNREADABLE,
    FormerIds,
    SentRecords,
    SentTopics,
    Sinks,
    fingerprint,
    may_change,
)
from rivermouth.verification.proofs.windows import Window, by_window, stride_of
from rivermouth.verification.result import Kind, Unchecked, count
from rivermouth.verification.subject import Subject


class SentCheck:
    """Compares one window of a partition with what was sent of it."""

    def __init__(self, sinks: Sinks, window: Window) -> None:
        self._sinks = sinks
        self._subject = sinks.subject
        self._window = window
        self._partition, self._start = window.partition, window.start
        offsets = window.offsets()
        entries = window.entries(offsets)
        self._topic, self._once = sinks.topics.of_entry[entries], sinks.once[entries]
        self._former = sinks.former.times(self._partition, offsets)
        self._due, self._distinct, self._lost = (np.zeros(window.size, bool) for _ in range(3))
        self._copies, self._elsewhere = np.zeros((2, window.size), np.int64)
        self._found = sinks.sent.take(self._partition, window.number)
        self._places = self._found[:, 0] - self._start
        self._here = np.zeros(len(self._found), bool)
        self._split(0, window.size)

    def see(self, seen: Seen) -> None:
        """See ``WindowCheck``."""
        here = np.flatnonzero(seen.good)
        offsets = seen.offsets[here]
        messages = [seen.messages[each] for each in here.tolist()]
        self._due[offsets - self._start] = True
        self._find_topics(offsets, messages)
        self._compare(offsets, messages)

    def _split(self, start: int, until: int) -> None:
        """Which copies are in the topic of their record, of the places ``[start, until)``."""
        first, last = np.searchsorted(self._places, [start, until])
        found, places = self._found[first:last], self._places[first:last]
        here = self._here[first:last] = found[:, 1] == self._topic[places]
        for counts, some in ((self._copies, here), (self._elsewhere, ~here)):
            counts[start:until] = _summed(places[some] - start, found[some, 3], until - start)

    def _find_topics(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Find the topics of records that name them. One that names none is not due."""
        entries = self._window.entries(offsets).tolist()
        asked = np.flatnonzero(self._topic[offsets - self._start] == BY_ROW).tolist()
        topics = self._sinks.topics
        for each in asked:
            place, entry = int(offsets[each]) - self._start, entries[each]
            try:
                readers, message = self._sinks.readers, messages[each]
                values = decoded(readers.of(entry), readers.value(entry, message))
                self._topic[place] = topics.of_record(entry, values)
            except Undecodable as fault:
                self._due[place] = False
                self._different(int(offsets[each]), f"not in quarantine, but {fault}")
            except CannotTell:
                # Else it is counted there; what own code made is not compared at all.
                self._sinks.unknown += not (topics.made[entry] or self._is_compared(place))
                first, last = np.searchsorted(self._places, [place, place + 1])
                holding = self._found[first:last, 1].tolist()
                self._topic[place] = topics.likely(entry, holding, self._sinks.sent.whole)
        if asked:
            first, last = int(offsets[asked[0]]), int(offsets[asked[-1]])
            self._split(first - self._start, last - self._start + 1)

    def close(self) -> None:
        """See ``WindowCheck``."""
        function = self._topic == FUNCTION
        self._sinks.in_a_function += int((self._due & function).sum())
        due = self._due & ~function
        missing = due & ((self._copies == 0) | self._lost)
        whole = self._sinks.sent.whole[np.maximum(self._topic, 0)]
        may_lack = missing & (self._once | ~whole)
        self._leave(Unchecked.NOT_SENT, "not in the sink", may_lack)
        self._report(Kind.MISSING, "not in the sink", self._without_left_out(missing & ~may_lack))
        # A former record may have several copies, so their number does not tell.
        hidden = due & (self._copies > 0) & (self._former > 0) & ~self._distinct & ~self._lost
        what = "not told in the sink from a former one at the same offset"
        self._leave(Unchecked.FORMER, what, hidden)
        more = np.maximum(self._copies - 1 - self._former, 0)
        twice = (more > 0) & self._once
        self._report(Kind.DUPLICATED, "more than once in the sink", twice, int(more[twice].sum()))
        expected = self._former + ~function
        again = np.maximum(self._copies + self._elsewhere - expected, 0)
        repeated = int(again.sum()) - int(more[twice].sum())
        self._subject.findings.repeated = (self._subject.findings.repeated or 0) + repeated
        self._report_unseen((self._copies + self._elsewhere > self._former) & ~self._due)

    def _without_left_out(self, missing: Flags) -> Flags:
        """Without the records of which own code made no row, as far as their entries tell of it."""
        places = np.flatnonzero(missing)
        offsets = places + self._start
        entries = self._window.entries(offsets)
        due = self._sinks.left_out.without(self._partition, offsets, entries)
        found = np.zeros(len(missing), bool)
        found[places[due]] = True
        return found

    def _report_unseen(self, unseen: Flags) -> None:
        """What was sent, but is no good record that Kafka shows."""
        offsets = (np.flatnonzero(unseen) + self._start).tolist()
        known = [e for e in offsets if not self._subject.not_verifiable(self._partition, e)]
        if known:  # more may have expired since the partition was read
            first = self._subject.source.first_offsets([self._partition])[self._partition]
            known = [each for each in known if each >= first]
        places = np.array(known, np.int64) - self._start
        wrong = self._subject.unexplained(self._partition, places + self._start)
        found, removed = np.zeros(len(unseen), bool), np.zeros(len(unseen), bool)
        found[places[wrong]], removed[places[~wrong]] = True, True
        what = "in the sink that Kafka does not have, as after compaction"
        self._leave(Unchecked.COMPACTED, what, removed)
        what = "in the sink, but Kafka shows no such good record"
        self._report(Kind.UNEXPECTED, what, found)

    def _compare(self, offsets: Offsets, messages: Sequence[Message]) -> None:
        """Compare the values of the records whose values were read in the sink."""
        entries = self._window.entries(offsets).tolist()
        for offset, entry, each in zip(offsets.tolist(), entries, messages, strict=True):
            place = offset - self._start
            if not self._is_compared(place) or not self._copies[place]:
                continue
            first, last = np.searchsorted(self._places, [place, place + 1])
            prints = self._found[first:last, 2][self._here[first:last]]
            try:
                readers = self._sinks.readers
                values = decoded(readers.of(entry), readers.value(entry, each))
            except Undecodable as fault:
                what = f"not in quarantine, but verify cannot decode it: {fault}"
                self._different(offset, what)
            except CannotTell:
                self._sinks.unknown += 1
            else:
                if self._sinks.topics.made[entry]:
                    self._sinks.made += 1
                    continue
                self._compare_values(offset, values, prints)

    def _is_compared(self, place: int) -> bool:
        """Whether the values of a record are compared, if it is in the sink."""
        return not (place + self._start) % self._sinks.stride or bool(self._former[place])

    def _compare_values(self, offset: int, values: tuple[object, ...], prints: Offsets) -> None:
        """Compare a record with its copies; those of former records may have other values."""
        place, own = offset - self._start, fingerprint(values)
        others = prints[prints != own]
        if own != UNREAD and (
            not len(others) or (len(others) < len(prints) and self._former[place])
        ):
            self._distinct[place] = True
        elif own == UNREAD or (others == UNREAD).any() or may_change(values, self._sinks.kinds):
            self._sinks.unknown += 1
        elif not self._former[place]:
            unreadable = bool((others == UNREADABLE).all())
            self._different(
                offset, "not readable in the sink" if unreadable else "other values in the sink"
            )
        else:  # all copies are those of former records
            self._lost[place] = True

    def _different(self, offset: int, what: str) -> None:
        line = f"{shown(self._partition)}@{offset}: {what}"
        self._subject.findings.add(Kind.DIFFERENT, line)

    def _leave(self, what: Unchecked, line: str, found: Flags) -> None:
        number = int(found.sum())
        line = f"{shown(self._partition)}: {count(number, 'record')} {line}"
        self._subject.findings.leave(what, line, number)

    def _report(self, kind: Kind, what: str, found: Flags, number: int | None = None) -> None:
        offsets = np.flatnonzero(found) + self._start
        self._subject.findings.add_offsets(kind, shown(self._partition), offsets, what, number)


def _summed(places: Offsets, times: Offsets, size: int) -> Offsets:
    return np.bincount(places, weights=times, minlength=size).astype(np.int64)


_WINDOW = 1 << 17


def verify_sent(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``send``."""
    columns = [each.name for each in subject.pipeline.columns]
    topics = SentTopics(subject.ledger.effective, columns)
    if not topics.names:
        good = sum(int(seen.good.sum()) for seen in replay(subject, stored, workspace.progress))
        _in_a_function(subject, good)
        return
    stored.require(columns)
    stride = stride_of(subject, workspace.bounds)
    former, window = FormerIds(subject), min(workspace.bounds.window, _WINDOW)
    sent = SentRecords(subject, topics.names, workspace.folder, window, stride, former)
    schema = stored.table.schema
    sent.read(resolve(SENT)(schema, columns))
    kinds = [schema.field(each).type for each in columns]
    readers = EntryReaders(subject, schema, columns)
    sinks = Sinks(subject, sent, topics, former, readers, kinds, stride)
    subject.findings.repeated = 0
    replayed = replay(subject, stored, workspace.progress)
    by_window(replayed, subject.coverage, window, partial(SentCheck, sinks))
    sinks.report()
    _in_a_function(subject, sinks.in_a_function)


def _in_a_function(subject: Subject, good: int) -> None:
    line = f"{count(good, 'record')}: only the function knows what became of them"
    subject.findings.leave(Unchecked.SINK, line, good)
