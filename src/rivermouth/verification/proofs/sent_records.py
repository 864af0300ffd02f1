"""What topics and functions hold of a pipeline that sends, by the ids in the headers of records.

Topics are numbers here: places in ``SentTopics.names``. What was sent waits on disk, by partition
and window of the offsets that were read: 24 bytes for each record.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verification.formats.reader import NOT_VERIFIABLE, CannotTell, Reader, Undecodable
from rivermouth.verification.kafka.client import headers_of
from rivermouth.verification.kafka.readable import note_unknown_policies
from rivermouth.verification.ledger.coverage import Flags, Former, Offsets
from rivermouth.verification.ledger.entry import LedgerEntry, Partition
from rivermouth.verification.proofs.decoding import EntryReaders, LeftOut, decoded
from rivermouth.verification.proofs.spill import Spill
from rivermouth.verification.result import Kind, Unchecked, count
from rivermouth.verification.subject import Subject

UNREAD = 0
"""The fingerprint of a record whose values are not known."""
UNREADABLE = 1
"""The fingerprint of a record that does not give the columns."""
_SECONDS = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970."""
_DAY = 86_400
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def fingerprint(values: tuple[Any, ...]) -> int:
    """A number of 64 bits for the values of a record; other values have another, nearly surely.

    ``UNREAD`` where one of them cannot be told.
    """
    if any(value is NOT_VERIFIABLE for value in values):
        return UNREAD
    found = hash(repr(_plain(values)))
    return found if found not in (UNREAD, UNREADABLE) else 2


def may_change(values: Sequence[Any], kinds: Sequence[pa.DataType]) -> bool:
    """Whether the values of a record may be others after a way through JSON.

    So are NaN, and times beyond the years 1 to 9999. A difference there proves nothing.
    """
    return any(_may_change(value, kind) for value, kind in zip(values, kinds, strict=True))


def _plain(value: Any) -> Any:
    """The value without the sign of a zero: by it equal values would have other texts."""
    if isinstance(value, float):
        return value or 0.0
    if isinstance(value, Decimal):
        return value or value.copy_abs()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _may_change(value: Any, kind: pa.DataType) -> bool:
    if value is None:
        return False
    if isinstance(value, float):
        return not math.isfinite(value)
    if pa.types.is_timestamp(kind):
        first, until = (each * _UNITS[kind.unit] for each in _SECONDS)
        return not first <= value < until
    if pa.types.is_date(kind):
        first, until = (each // _DAY for each in _SECONDS)
        return not first <= value < until
    if pa.types.is_struct(kind):
        return any(_may_change(value.get(each.name), each.type) for each in kind)
    if pa.types.is_map(kind):
        parts = ((name, kind.key_type, item) for name, item in value)
        return any(_may_change(n, key) or _may_change(v, kind.item_type) for n, key, v in parts)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return any(_may_change(each, kind.value_type) for each in value)
    return value is NOT_VERIFIABLE


class FormerIds:
    """Ids from before accepted changes of the source, and of entries that were rolled back.

    Nobody takes back what was sent: a RESTORE or a TRUNCATE takes the entries, but not the records
    in a topic.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        versions = {each.version for each in subject.ledger.effective}
        ranges: dict[Partition, list[tuple[int, int, int]]] = {}
        for entry in subject.ledger.recorded:
            if entry.version in versions:
                continue
            for each in entry.ranges:
                if each.start < each.until:
                    ranges.setdefault(each.partition, []).append((each.start, each.until, -1))
        self._undone = Former(ranges)

    def times(self, partition: Partition, offsets: Offsets) -> Offsets:
        """How many former records each offset may have: each left one copy or more."""
        accepted = self._subject.coverage.former.times(partition, offsets)
        undone = self._undone.times(partition, offsets)
        return accepted + undone + self._subject.removed_changes

    def has(self, partition: Partition, offset: int) -> bool:
        """Whether the offset may have any."""
        if not self._subject.has_former(partition) and partition not in self._undone:
            return False
        return bool(self.times(partition, np.array([offset], np.int64))[0])


FUNCTION = -1
"""Instead of a topic: the records of the entry went to a function."""
BY_ROW = -2
"""Instead of a topic: a column names that of each record."""


class SentTopics:
    """The topics of all effective entries, and which of them a record belongs to.

    ``names`` are in order. ``of_entry`` gives for each entry the number of its topic, ``FUNCTION``
    or ``BY_ROW``. ``columns`` are those of records, in order. ``made`` tells for each entry whether
    own code made what was sent; then a record does not tell its topic.
    """

    def __init__(self, entries: Sequence[LedgerEntry], columns: Sequence[str]) -> None:
        self.names = sorted({name for each in entries for name in _topics(each)})
        self._listed = [[self.names.index(name) for name in _topics(each)] for each in entries]
        self._chosen_by = [each.config.get("topic_column") for each in entries]
        self._partitioned_by = [each.config.get("partition_column") for each in entries]
        self._columns = tuple(columns)
        self.made = np.array([bool(each.transform) for each in entries], bool)
        pairs = zip(self._listed, self._chosen_by, strict=True)
        self.of_entry = np.array([_number(*each) for each in pairs], np.int64)

    def of_record(self, entry: int, values: Sequence[object]) -> int:
        """The topic of a record of an entry that has ``BY_ROW``, by the values of its columns.

        Raises Undecodable where the record names none of the topics of its entry, and CannotTell.
        """
        if self.made[entry]:
            raise CannotTell("own code names the topic")
        name = self._value(self._chosen_by[entry], values)
        for number in self._listed[entry]:
            if name == self.names[number]:
                return number
        raise Undecodable("it names no topic" if name is None else "it names another topic")

    def check(self, entry: int, values: Sequence[object]) -> None:
        """Raises Undecodable where a record names no place to send it to, and CannotTell."""
        if self.made[entry]:
            return
        if self.of_entry[entry] == BY_ROW:
            self.of_record(entry, values)
        if column := self._partitioned_by[entry]:
            number = self._value(column, values)
            if isinstance(number, int) and number < 0:
                raise Undecodable("its partition is negative")

    def _value(self, column: object, values: Sequence[object]) -> object:
        if column not in self._columns:
            raise CannotTell("the column that names the place is not configured any more")
        found = values[self._columns.index(str(column))]
        if found is NOT_VERIFIABLE:
            raise CannotTell("the name of the place")
        return found

    def likely(self, entry: int, holding: Collection[int], whole: Iterable[bool]) -> int:
        """The topic of a record that nobody can tell: one that holds it, or may have lost it."""
        listed = self._listed[entry]
        lost = [number for number, each in enumerate(whole) if not each and number in listed]
        return next((each for each in listed if each in holding), [*lost, *listed][0])


def _topics(entry: LedgerEntry) -> list[str]:
    """The topics of an entry: a list where a column chooses, else the name of one."""
    names = entry.config.get("kafka")
    return [names] if isinstance(names, str) else [*map(str, names or ())]


def _number(listed: list[int], column: object) -> int:
    if not listed:
        return FUNCTION
    return listed[0] if column is None else BY_ROW


_ID = "rm-id"
_PIECE = 1 << 17
"""So many copies are in memory before equal ones are counted together."""
_SENT = {
    Unchecked.AHEAD: "but no entry covers them yet",
    Unchecked.TRIMMED: "log clean-up removed their entries",
    Unchecked.FORMER: "before a change that was accepted, or by entries that were rolled back",
}
Copies = NDArray[np.int64]
"""Rows of offset, number of the topic, fingerprint, and how many such copies; ascending."""


class SentRecords:
    """The records of a pipeline in ``topics``: whose they are, and a fingerprint of their values.

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
        note_unknown_policies(known, self._subject.findings)
        gone = {each[0] for each, offset in first.items() if offset}
        gone |= {topic for (topic, _), left in holes.items() if left and topic in known.thinned}
        self.whole = np.array([each in known.topics and each not in gone for each in self.topics])
        for what, number in self._left.items():
            line = f"{count(number, 'record')} sent: {_SENT[what]}"
            self._subject.findings.leave(what, line, number)

    def take(self, partition: Partition, number: int) -> Copies:
        """What was sent of one window; it is forgotten here."""
        counted = np.zeros((0, 4), np.int64)
        waiting: list[Copies] = []
        for piece in self._spill.take_items((partition, number)):
            waiting.append(np.frombuffer(piece, np.int64).reshape(-1, 3))
            if sum(map(len, waiting)) >= _PIECE:
                counted, waiting = _counted(counted, waiting), []
        return _counted(counted, waiting)

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
                    of_values = self._fingerprint(read, partition, offset, each.value())
                    found[partition, number].append((offset, topic, of_values))
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

    def _fingerprint(
        self, read: Reader, partition: Partition, offset: int, value: bytes | None
    ) -> int:
        if offset % self._stride and not self._former.has(partition, offset):
            return UNREAD
        try:
            return fingerprint(decoded(read, value))
        except Undecodable:
            return UNREADABLE
        except CannotTell:
            return UNREAD


def _counted(counted: Copies, pieces: Iterable[Copies]) -> Copies:
    """``counted`` and single copies together: one row for all that are equal."""
    single = [np.column_stack((each, np.ones(len(each), np.int64))) for each in pieces]
    rows = np.concatenate((counted, *single))
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


_AT_MOST_ONCE = "at-most-once"


@dataclass
class Sinks:
    """Where each entry sent its records, and counts.

    ``kinds`` are the types of the columns.
    """

    subject: Subject
    sent: SentRecords
    topics: SentTopics
    former: FormerIds
    readers: EntryReaders
    kinds: Sequence[pa.DataType]
    stride: int
    in_a_function: int = 0
    unknown: int = 0
    """Records whose values could not be compared."""
    made: int = 0
    """Records of which own code made what was sent; values are not compared."""

    @cached_property
    def left_out(self) -> LeftOut:
        """The records of which own code made nothing."""
        return LeftOut(self.subject.ledger.effective)

    @cached_property
    def once(self) -> Flags:
        """Which entries send at most once."""
        configs = [each.config for each in self.subject.ledger.effective]
        return np.array([each.get("delivery") == _AT_MOST_ONCE for each in configs], bool)

    def report(self) -> None:
        """Say how many records could not be compared, and how many were left out."""
        self.left_out.report(self.subject.findings)
        line = f"the values of {count(self.made, 'record')}: transform or select made them"
        self.subject.findings.leave(Unchecked.MADE, line, self.made)
        line = f"the values of {count(self.unknown, 'record')} in the sink: verify cannot tell"
        self.subject.findings.leave(Unchecked.VALUES, line, self.unknown)
