"""Comparing one record with one row: decoding the record, naming the columns that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Reader, Undecodable
from rivermouth.verify.result import Findings, Unchecked, count

_FIRST_TIME = -(1 << 63)


def decoded(read: Reader, value: bytes | None) -> tuple[Any, ...]:
    """The columns of a record value. Raises Undecodable: a null or empty value has none."""
    if not value:
        raise Undecodable("the value is null" if value is None else "the value is empty")
    return read(value)


def decoded_key(read: Reader, key: bytes | None) -> tuple[Any, ...]:
    """The key columns of a message key, which may be empty. Raises Undecodable."""
    if key is None:
        raise Undecodable("there is no message key")
    return read(key)


class NotCompared(Exception):
    """The record can be decoded, but the values of its row are not those of the record."""


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

    ``untold`` counts the values that the reader could not tell; the others of a row are compared.
    ``made`` counts the rows whose values are none of the record's.
    """

    def __init__(self, columns: Sequence[str], metadata: Sequence[str] = ()) -> None:
        self.untold = 0
        self.made = 0
        self._columns = tuple(columns)
        self._told = ("_kafka.timestamp", *(f"_kafka.{each}" for each in metadata))

    def differences(
        self, read: Reader, value: bytes | None, told: Sequence[Any], row: Sequence[Any]
    ) -> str:
        """Names the columns of ``row`` that the record does not have so; empty where none.

        ``read`` is the reader of the record's entry. ``told`` are the timestamp in microseconds and
        the metadata. ``row`` are the canonical values of the columns, then those two. Raises
        Undecodable where the record value cannot be read.
        """
        number = len(self._columns)
        self.untold += sum(each is NOT_VERIFIABLE for each in told)
        try:
            found = decoded(read, value)
        except CannotTell:
            self.untold += number
            return differences(self._told, told, row[number:])
        except NotCompared:
            self.made += 1
            return differences(self._told, told, row[number:])
        self.untold += sum(each is NOT_VERIFIABLE for each in found)
        return differences((*self._columns, *self._told), (*found, *told), row)

    def report(self, findings: Findings) -> None:
        """Say how many values could not be told, and how many rows were not compared."""
        if self.made:
            line = f"the values of {count(self.made, 'row')}: transform or select made them"
            findings.leave(Unchecked.MADE, line, self.made)
        if self.untold:
            line = f"{count(self.untold, 'value')}: verify cannot tell what Spark makes of them"
            findings.leave(Unchecked.VALUES, line, self.untold)


def differences(names: Sequence[str], expected: Sequence[Any], found: Sequence[Any]) -> str:
    """The names of the columns whose values differ; empty where none does."""
    pairs = zip(names, expected, found, strict=True)
    # NaN is not equal to itself; its text is.
    differing = [name for name, a, b in pairs if a != b and repr(a) != repr(b)]
    return f"other values in {', '.join(differing)}" if differing else ""
