"""What topics hold of a pipeline that sends, by the ids in the headers of their records.

On disk by partition and window of the offsets that were read: 24 bytes for each record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.formats.reader import CannotTell, Reader, Undecodable
from rivermouth.verify.kafka.headers import headers_of
from rivermouth.verify.kafka.readable import note_untold
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.compare import decoded
from rivermouth.verify.proofs.sent_ids import FormerIds
from rivermouth.verify.proofs.sent_values import UNREAD, UNREADABLE, mark
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import Kind, Unchecked, count
from rivermouth.verify.subject import Subject

_ID = "rm-id"
_PIECE = 1 << 17
"""So many copies are in memory before equal ones are counted together."""
_SENT = {
    Unchecked.AHEAD: "but no entry covers them yet",
    Unchecked.TRIMMED: "log clean-up removed their entries",
    Unchecked.FORMER: "before a change that was accepted, or by entries that were rolled back",
}
Copies = NDArray[np.int64]
"""Rows of offset, number of the topic, mark, and how many such copies there are; ascending."""


class SentRecords:
    """The records of a pipeline in ``topics``: whose they are, and a mark of their values.

    ``read`` reads their values as JSON. Of offsets that are no multiple of ``stride`` no value is
    read, unless only the value tells the record from a former one. ``whole``: for each topic,
    whether it still holds all that was ever sent to it.
    """

    def __init__(
        self,
        subject: Subject,
        topics: Iterable[str],
        folder: Path,
        window: int,
        stride: int,
        former: FormerIds,
    ) -> None:
        self.window = window
        self.topics = sorted({*topics})
        self.whole = np.ones(len(self.topics), bool)
        self._subject = subject
        self._spill = Spill(folder / "sent")
        self._stride = stride
        self._former = former
        self._left: Counter[Unchecked] = Counter()

    def read(self, read: Reader) -> None:
        """Read the topics once, to their ends. Raises SourceError."""
        source = self._subject.source
        partitions = source.partitions(self.topics)
        first, ends = source.first_offsets(partitions), source.end_offsets(partitions)
        holes = {**ends}
        for partition, messages in source.read({each: (first[each], ends[each]) for each in first}):
            holes[partition] -= len(messages)
            self._keep(self.topics.index(partition[0]), messages, read)
        # Only now: retention may have removed records while they were read.
        first, known = source.first_offsets(partitions), source.identity(self.topics)
        note_untold(known, self._subject.findings)
        gone = {each[0] for each, offset in first.items() if offset}
        gone |= {topic for (topic, _), left in holes.items() if left and topic in known.thinned}
        self.whole = np.array([each in known.topics and each not in gone for each in self.topics])
        for what, number in self._left.items():
            line = f"{count(number, 'record')} sent: {_SENT[what]}"
            self._subject.findings.leave(what, line, number)

    def take(self, partition: Partition, number: int) -> Copies:
        """What was sent of one window; it is forgotten here."""
        held = np.zeros((0, 4), np.int64)
        waiting: list[Copies] = []
        for piece in self._spill.take_items((partition, number)):
            waiting.append(np.frombuffer(piece, np.int64).reshape(-1, 3))
            if sum(map(len, waiting)) >= _PIECE:
                held, waiting = _counted(held, waiting), []
        return _counted(held, waiting)

    def _keep(self, topic: int, messages: Iterable[Message], read: Reader) -> None:
        found: dict[tuple[Partition, int], list[tuple[int, int, int]]] = defaultdict(list)
        for each in messages:
            # The sink's own records have names that can be read: others are another program's.
            for header in headers_of(each) or ():
                owner = _owner(*header)
                if owner is None or owner[0] != self._subject.pipeline.ledger_name:
                    continue
                _, partition, offset = owner
                number = self._number(partition, offset)
                if number is not None:
                    told = self._mark(read, partition, offset, each.value())
                    copy = (offset, topic, told)
                    found[partition, number].append(copy)
        for key, copies in found.items():
            self._spill.add_items(key, [np.array(copies, np.int64).tobytes()])

    def _number(self, partition: Partition, offset: int) -> int | None:
        """The window of an offset; None where no entry covers it."""
        subject = self._subject
        span = subject.coverage.spans.get(partition)
        if span is not None and span.start <= offset < span.until:
            return (offset - span.start) // self.window
        if subject.before_ledger(partition, offset):
            self._left[Unchecked.TRIMMED] += 1
        elif self._former.has(partition, offset):
            self._left[Unchecked.FORMER] += 1
        elif span is None or offset >= span.until:
            self._left[Unchecked.AHEAD] += 1
        else:
            line = f"{partition[0]}[{partition[1]}]@{offset}: sent, but in no range of the ledger"
            subject.findings.add(Kind.UNEXPECTED, line)
        return None

    def _mark(self, read: Reader, partition: Partition, offset: int, value: bytes | None) -> int:
        if offset % self._stride and not self._former.has(partition, offset):
            return UNREAD
        try:
            return mark(decoded(read, value))
        except Undecodable:
            return UNREADABLE
        except CannotTell:
            return UNREAD


def _counted(held: Copies, pieces: Iterable[Copies]) -> Copies:
    """``held`` and single copies together: one row for all that are equal."""
    single = [np.column_stack((each, np.ones(len(each), np.int64))) for each in pieces]
    rows = np.concatenate((held, *single))
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    other = np.any(rows[1:, :3] != rows[:-1, :3], axis=1)
    begins = np.concatenate(([0], np.flatnonzero(other) + 1))
    found = rows[begins]
    found[:, 3] = np.add.reduceat(rows[:, 3], begins)
    return found


def _owner(name: object, text: object) -> tuple[str, Partition, int] | None:
    """Pipeline, partition and offset of a record that was sent; None for a header of others."""
    if name != _ID or not isinstance(text, bytes):
        return None
    parts = text.decode("utf-8", "replace").split("/")
    if len(parts) != 4 or not all(each.isdecimal() for each in parts[2:]):
        return None
    return parts[0], (parts[1], int(parts[2])), int(parts[3])
