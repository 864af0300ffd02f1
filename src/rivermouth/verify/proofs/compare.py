"""Comparing one record with one row: decoding the record, naming the columns that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rivermouth.verify.formats.reader import Reader, Undecodable


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


class Comparison:
    """Compares whole rows: ``columns``, and the timestamp of the record."""

    def __init__(self, read: Reader, columns: Sequence[str]) -> None:
        self._read = read
        self._names = (*columns, "_kafka.timestamp")

    def differences(self, value: bytes | None, timestamp_us: int, row: Sequence[Any]) -> str:
        """Names the columns of ``row`` that the record does not have so; empty where none.

        ``row`` are the canonical values of the columns, then the timestamp in microseconds.
        Raises Undecodable where the record value cannot be read.
        """
        return differences(self._names, (*decoded(self._read, value), timestamp_us), row)


def differences(names: Sequence[str], expected: Sequence[Any], found: Sequence[Any]) -> str:
    """The names of the columns whose values differ; empty where none does."""
    pairs = zip(names, expected, found, strict=True)
    # NaN is not equal to itself; its text is.
    differing = [name for name, a, b in pairs if a != b and repr(a) != repr(b)]
    return f"other values in {', '.join(differing)}" if differing else ""
