"""Decoding a record as its entry's driver did, and comparing it with a row.

A column that was added later is null in the rows from before: those records were decoded without
it, whatever they hold under its name. In the same way the version and the settings of the decoder
are those of the entry.

A row that the pipeline's own code made is proved by its coordinates and by the timestamp of its
record; its values are not compared. A record that has no row may have been left out by the code,
but no more of them than the commit says: it tells how many rows it wrote, and its entry how many
records took effect.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.config.formats import FORMATS
from rivermouth.verification.formats.reader import (
    FIELDS,
    GONE,
    NOT_VERIFIABLE,
    CannotTell,
    NoRow,
    Reader,
    Undecodable,
    UnknownDecoder,
    Untold,
)
from rivermouth.verification.kafka.client import IN_HEADER, headers_of, with_number
from rivermouth.verification.ledger.coverage import Flags, Offsets
from rivermouth.verification.ledger.entry import LedgerEntry, Partition, shown
from rivermouth.verification.result import Findings, Kind, Unchecked, count
from rivermouth.verification.subject import Decoder, Subject
from rivermouth.verification.tables.ports import Unreadable, schema_of

_FIRST_TIME = -(1 << 63)


@dataclass(frozen=True)
class Tolerant:
    """A reader to which a record without a value is not bad: it has the row ``nulls``."""

    read: Reader
    nulls: tuple[None, ...]

    def __call__(self, value: bytes) -> tuple[Any, ...]:
        """The columns of a value that is there."""
        return self.read(value)


def decoded(read: Reader, value: bytes | None) -> tuple[Any, ...]:
    """The columns of a record value.

    Raises Undecodable: an empty value has none, and a null one only where ``read`` is tolerant.
    """
    if value is None and isinstance(read, Tolerant):
        return read.nulls
    if not value:
        raise Undecodable("the value is null" if value is None else "the value is empty")
    return read(value)


def decoded_key(read: Reader, key: bytes | None) -> tuple[Any, ...]:
    """The key columns of a message key, which may be empty. Raises Undecodable."""
    if key is None:
        raise Undecodable("there is no message key")
    return read(key)


def check_key(key: Sequence[Any], order: Sequence[Any] = ()) -> None:
    """Raises CannotTell where a value cannot be told, Undecodable where a key column is null."""
    if any(each is NOT_VERIFIABLE for each in (*key, *order)):
        raise CannotTell("a key or order column")
    if any(each is None for each in key):
        raise Undecodable("a key column is null")


def key_part(value: Any, width: int | None) -> Any:
    """A key column of totals: the value, or where the window begins that it is in.

    A window has ``width`` microseconds. Raises Undecodable where it begins before all times.
    """
    if width is None or value is None or value is NOT_VERIFIABLE:
        return value
    begins = value - value % width
    if begins < _FIRST_TIME:
        raise Undecodable("its window begins before all times")
    return begins


class Comparison:
    """Compares whole rows: ``columns``, and what ``_kafka`` tells of the record.

    That is the timestamp, and the fields ``metadata``.

    ``unknown`` counts the values that the reader could not tell; the others of a row are compared.
    ``made`` counts the rows that own code made: their values are none of the record's.
    """

    def __init__(self, columns: Sequence[str], metadata: Sequence[str] = ()) -> None:
        self.unknown = 0
        self.made = 0
        self._columns = tuple(columns)
        self._kafka_names = ("_kafka.timestamp", *(f"_kafka.{each}" for each in metadata))

    def differences(
        self,
        read: Reader,
        value: bytes | None,
        kafka: Sequence[Any],
        row: Sequence[Any],
        *,
        made: bool = False,
        before: Callable[[], Iterable[Sequence[Any]]] = tuple,
    ) -> str:
        """Names the columns of ``row`` that the record does not have so; empty where none.

        ``read`` is the reader of the record's entry. ``kafka`` are the timestamp in microseconds
        and the metadata. ``row`` are the canonical values of the columns, then those two. ``made``:
        own code made the row. ``before``: the values of earlier records of its key, the newest
        first, from which come those that the record does not tell. Raises Undecodable where a
        record value cannot be read.
        """
        number = len(self._columns)
        try:
            found = decoded(read, value)
        except CannotTell:
            return self.without_value(kafka, row)
        self.unknown += sum(each is NOT_VERIFIABLE for each in kafka)
        if made:
            self.made += 1
            return differences(self._kafka_names, kafka, row[number:])
        if any(isinstance(each, Untold) for each in found):
            found = _with_kept(found, before())
        self.unknown += sum(each is NOT_VERIFIABLE for each in found)
        return differences((*self._columns, *self._kafka_names), (*found, *kafka), row)

    def without_value(self, kafka: Sequence[Any], row: Sequence[Any]) -> str:
        """The same of a record whose value cannot be told: what Kafka says of it is compared."""
        number = len(self._columns)
        self.unknown += number + sum(each is NOT_VERIFIABLE for each in kafka)
        return differences(self._kafka_names, kafka, row[number:])

    def report(self, findings: Findings) -> None:
        """Say how many values could not be told, and how many rows were not compared."""
        line = f"the values of {count(self.made, 'row')}: transform or select made them"
        findings.leave(Unchecked.MADE, line, self.made)
        line = f"{count(self.unknown, 'value')}: verify cannot tell what Spark makes of them"
        findings.leave(Unchecked.VALUES, line, self.unknown)


def _with_kept(found: Sequence[Any], before: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    """The values, with those that stay as they are from earlier records. If none tells a value,
    what the newest event has in its place stays.
    """
    values = [*found]
    for earlier in before:
        if not any(isinstance(each, Untold) for each in values):
            break
        both = zip(values, earlier, strict=True)
        values = [e if isinstance(v, Untold) and not isinstance(e, Untold) else v for v, e in both]
    return tuple(each.instead if isinstance(each, Untold) else each for each in values)


def differences(names: Sequence[str], expected: Sequence[Any], found: Sequence[Any]) -> str:
    """The names of the columns whose values differ; empty where none does."""
    pairs = zip(names, expected, found, strict=True)
    # NaN is not equal to itself; its text is.
    differing = [name for name, a, b in pairs if a != b and repr(a) != repr(b)]
    return f"other values in {', '.join(differing)}" if differing else ""


Made = TypeVar("Made")


class EntryReaders:
    """Gives readers for each effective entry, by its index: of ``columns``, and of message keys.

    They raise Unreadable where an entry names a decoder, or a form of keys, that is not known.
    """

    def __init__(self, subject: Subject, schema: pa.Schema, columns: Sequence[str]) -> None:
        self._entries = subject.ledger.effective
        numbered = (each.decoder.get("framing") == IN_HEADER for each in self._entries)
        self._headed = frozenset(n for n, its in enumerate(numbered) if its)
        self._subject = subject
        self._schema = schema
        self._columns = tuple(columns)
        self._known: dict[int, Reader] = {}
        self._of_values: dict[tuple[tuple[str, ...], str], Reader] = {}
        self._of_keys: dict[tuple[str | None, str], Reader | None] = {}

    def of(self, entry: int) -> Reader:
        """Reads all columns; those that the entry did not know are null."""
        if entry not in self._known:
            its = self._entries[entry]
            told = {*its.columns, *([GONE] if "envelope" in its.decoder else [])}
            names = tuple(each for each in self._columns if each in told)
            decoder = {**its.decoder, FIELDS: [*its.columns]}
            key = names, _text(decoder)
            if key not in self._of_values:
                self._of_values[key] = _known(its, lambda: self._make(names, decoder))
            self._known[entry] = self._of_values[key]
        return self._known[entry]

    def value(self, entry: int, message: Message) -> bytes | None:
        """What ``of`` reads of a record. Raises CannotTell where its headers cannot be read."""
        value: bytes | None = message.value()
        if entry not in self._headed:
            return value
        return with_number("value", value, headers_of(message))

    def key(self, entry: int, message: Message) -> bytes | None:
        """What ``of_keys`` reads of it, likewise."""
        key: bytes | None = message.key()
        if entry not in self._headed:
            return key
        if not FORMATS.keys[str(self._entries[entry].config["key"])].framed:
            return key
        return with_number("key", key, headers_of(message))

    def tells_of_no_row(self, entry: int, message: Message) -> bool:
        """Whether a record of an entry is an event of nothing that happened to a row."""
        try:
            decoded(self.of(entry), self.value(entry, message))
        except NoRow:
            return True
        except (Undecodable, CannotTell):
            pass
        return False

    def of_keys(self, entry: int) -> Reader | None:
        """Reads message keys by the setting of the entry; None: null values had no meaning."""
        its = self._entries[entry]
        name = its.config.get("key")
        key = name, _text(its.decoder)
        if key not in self._of_keys:
            make = self._subject.key_reader
            self._of_keys[key] = _known(its, lambda: make(self._schema, name, its.decoder))
        return self._of_keys[key]

    def _make(self, names: tuple[str, ...], decoder: Decoder) -> Reader:
        read, what = self._of_bytes(names, decoder), self._subject.without_value(decoder)
        as_row = what == "row" and not {*decoder.get("not_null", ())} & {*names}
        nulls = (None,) * len(self._columns)
        return Tolerant(read, nulls) if what == "skip" or as_row else read

    def _of_bytes(self, names: tuple[str, ...], decoder: Decoder) -> Reader:
        read = self._subject.reader(self._schema, names, decoder)
        partitions = self._subject.pipeline.target.partition_by
        if names == self._columns and not partitions:
            return read

        def spread(value: bytes) -> tuple[Any, ...]:
            found = dict(zip(names, read(value), strict=True))
            # As the value of a partition an empty text is null, whoever writes the table.
            empty = [name for name in partitions if found.get(name) == ""]
            return tuple(None if n in empty else found.get(n) for n in self._columns)

        return spread


def _text(decoder: Decoder) -> str:
    """The decoder of an entry as text, by which it can be compared."""
    return json.dumps(decoder, sort_keys=True) if decoder else ""


def _known(entry: LedgerEntry, make: Callable[[], Made]) -> Made:
    """What ``make`` makes. Raises Unreadable where it does not know the decoder of the entry."""
    try:
        return make()
    except UnknownDecoder as unknown:
        line = f"entry {entry.sequence} was decoded by {unknown}, which this version does not know"
        raise Unreadable(f"{line}: upgrade rivermouth") from unknown


_SHOWN = 3


class MadeReaders:
    """Readers as ``plain`` gives them; for entries whose rows own code made, those of records."""

    def __init__(self, subject: Subject, plain: EntryReaders) -> None:
        self._all = bool(subject.pipeline.made_by)
        self._entries = subject.ledger.effective
        self._plain = plain
        names = [each.name for each in subject.pipeline.columns]
        self._records = EntryReaders(subject, schema_of(subject.pipeline.columns), names)

    def of(self, entry: int) -> Reader:
        """The reader for the records of an entry, by its index."""
        return (self._records if self.made(entry) else self._plain).of(entry)

    def value(self, entry: int, message: Message) -> bytes | None:
        """See ``EntryReaders``."""
        return self._plain.value(entry, message)

    def made(self, entry: int) -> bool:
        """Whether own code made the rows of an entry."""
        return self._all or bool(self._entries[entry].transform)


class LeftOut:
    """The records without a row, by entry, against the number that its commit tells."""

    def __init__(self, entries: Sequence[LedgerEntry]) -> None:
        self._entries = entries
        made = np.array([bool(each.transform) and each.left_out != 0 for each in entries], bool)
        self._may = made
        self._found: Counter[int] = Counter()
        self._shown: dict[int, list[str]] = {}

    def without(self, partition: Partition, missing: Offsets, entries: NDArray[Any]) -> Flags:
        """Which of these offsets, each of a visible record without a row, must have one.

        ``entries`` are the indices of their entries. The others are counted.
        """
        if not self._may.any():
            return np.ones(len(missing), bool)
        may: Flags = self._may[entries]
        for entry in np.unique(entries[may]).tolist():
            here = missing[may & (entries == entry)]
            self._found[entry] += len(here)
            lines = self._shown.setdefault(entry, [])
            lines += [f"{shown(partition)}@{each}" for each in here[: _SHOWN - len(lines)].tolist()]
        return ~may

    def report(self, findings: Findings) -> None:
        """Say how many were left out; more than the commit tells of are missing."""
        left = 0
        for entry, found in sorted(self._found.items()):
            most = self._entries[entry].left_out
            more = 0 if most is None else max(0, found - most)
            left += found - more
            if more:
                line = f"entry {self._entries[entry].sequence}: {count(found, 'record')} without a"
                line += f" row, but {most} left out by {self._entries[entry].transform}; among them"
                findings.add(Kind.MISSING, f"{line} {', '.join(self._shown[entry])}", count=more)
        line = f"{count(left, 'record')} without a row: the transform left them out"
        findings.leave(Unchecked.LEFT_OUT, line, left)
