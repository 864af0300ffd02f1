"""What topics hold of a pipeline that sends, by the ids in the headers of their records.

On disk by partition and window of the offsets that were read: 16 bytes for each record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.formats.reader import CannotTell, Reader, Undecodable
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.compare import decoded
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import Kind, Unchecked, count
from rivermouth.verify.subject import Subject

_ID = "rm-id"
UNREAD = 0
"""The mark of a record whose values are not compared."""
_UNREADABLE = 1


def mark(values: tuple[object, ...]) -> int:
    """A number of 64 bits for the values of a record; other values have another, nearly surely."""
    return hash(repr(values)) or 2


class SentRecords:
    """The records of a pipeline in ``topics``: whose they are, and a mark of their values.

    ``read`` reads their values as JSON. Of offsets that are no multiple of ``stride`` no value is
    read. ``whole``: the topics still hold all that was ever sent to them.
    """

    def __init__(
        self, subject: Subject, topics: Iterable[str], folder: Path, window: int, stride: int
    ) -> None:
        self.window = window
        self.whole = True
        self._subject = subject
        self._topics = sorted({*topics})
        self._spill = Spill(folder / "sent")
        self._stride = stride
        self._ahead = self._trimmed = 0

    def read(self, read: Reader) -> None:
        """Read the topics once, to their ends. Raises SourceError."""
        source = self._subject.source
        partitions = source.partitions(self._topics)
        first, ends = source.first_offsets(partitions), source.end_offsets(partitions)
        known = source.identity(self._topics)
        gone = any(first.values()) or bool(known.compacted)
        self.whole = not gone and {*known.topics} == {*self._topics}
        for _, messages in source.read({each: (first[each], ends[each]) for each in partitions}):
            self._keep(messages, read)
        findings = self._subject.findings
        if self._ahead:
            line = f"{count(self._ahead, 'record')} were sent, but no entry covers them yet"
            findings.leave(Unchecked.AHEAD, line, self._ahead)
        if self._trimmed:
            line = f"{count(self._trimmed, 'record')} were sent: log clean-up removed their entries"
            findings.leave(Unchecked.TRIMMED, line, self._trimmed)

    def take(self, partition: Partition, number: int) -> tuple[Offsets, NDArray[np.int64]]:
        """Offsets and marks of one window, unsorted; they are forgotten here."""
        pairs = np.frombuffer(self._spill.take((partition, number)), np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _keep(self, messages: Iterable[Message], read: Reader) -> None:
        found: dict[tuple[Partition, int], list[tuple[int, int]]] = defaultdict(list)
        for each in messages:
            for header in each.headers() or ():
                owner = _owner(*header)
                if owner is None or owner[0] != self._subject.pipeline.ledger_name:
                    continue
                _, partition, offset = owner
                number = self._number(partition, offset)
                if number is not None:
                    pair = (offset, self._mark(read, offset, each.value()))
                    found[partition, number].append(pair)
        for key, pairs in found.items():
            self._spill.add(key, np.array(pairs, np.int64).tobytes())

    def _number(self, partition: Partition, offset: int) -> int | None:
        """The window of an offset; None where no entry covers it."""
        subject = self._subject
        span = subject.coverage.spans.get(partition)
        if span is not None and span.start <= offset < span.until:
            return (offset - span.start) // self.window
        if subject.before_ledger(partition, offset):
            self._trimmed += 1
        elif span is None or offset >= span.until:
            self._ahead += 1
        else:
            line = f"{partition[0]}[{partition[1]}]@{offset}: sent, but in no range of the ledger"
            subject.findings.add(Kind.UNEXPECTED, line)
        return None

    def _mark(self, read: Reader, offset: int, value: bytes | None) -> int:
        if offset % self._stride:
            return UNREAD
        try:
            return mark(decoded(read, value))
        except Undecodable:
            return _UNREADABLE
        except CannotTell:
            return UNREAD


def _owner(name: object, text: object) -> tuple[str, Partition, int] | None:
    """Pipeline, partition and offset of a record that was sent; None for a header of others."""
    if name != _ID or not isinstance(text, bytes):
        return None
    parts = text.decode("utf-8", "replace").split("/")
    if len(parts) != 4 or not all(each.isdecimal() for each in parts[2:]):
        return None
    return parts[0], (parts[1], int(parts[2])), int(parts[3])
