"""Message keys that are one plain value: text, or a whole number of eight bytes.

Written from the documented behaviour of Spark's ``try_cast``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Reader, Undecodable
from rivermouth.verify.formats.scalars import days, decimal, micros, single

_TRUE = ("t", "true", "y", "yes", "1")


def string(schema: pa.Schema, columns: Sequence[str]) -> Reader:
    """Reads the key as text, cast to the type of the single column."""
    kind = _only(schema, columns)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda key: (key,)
    cast = _from_text(kind)

    def read(key: bytes) -> tuple[Any, ...]:
        text = key.decode("utf-8", "replace")
        try:
            return (cast(text),)
        except ValueError as fault:
            raise Undecodable(f"a message key that is not {kind}: {text!r}") from fault

    return read


def long(schema: pa.Schema, columns: Sequence[str]) -> Reader:
    """Reads the key as Kafka's LongSerializer writes it: eight bytes, big-endian, signed."""
    kind = _only(schema, columns)
    if not pa.types.is_integer(kind):
        raise Undecodable(f"a message key of eight bytes for a column of type {kind}")

    def read(key: bytes) -> tuple[Any, ...]:
        if len(key) != 8:
            raise Undecodable(f"a message key of {len(key)} bytes, expected 8")
        return (_fitting(struct.unpack(">q", key)[0], kind),)

    return read


def _only(schema: pa.Schema, columns: Sequence[str]) -> pa.DataType:
    """The type of the one column that a plain key holds."""
    [name] = columns
    return schema.field(name).type


def _from_text(kind: pa.DataType) -> Callable[[str], Any]:
    """Casts text to a type; what it returns raises ValueError."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str
    if pa.types.is_integer(kind):
        return lambda text: _fitting(int(text), kind)
    if pa.types.is_floating(kind):
        return float if kind.bit_width == 64 else lambda text: single(float(text))
    if pa.types.is_boolean(kind):
        return lambda text: text.strip().lower() in _TRUE
    if pa.types.is_decimal(kind):
        return lambda text: decimal(text.strip(), kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return days
    if pa.types.is_timestamp(kind):
        return lambda text: micros(text, zone=kind.tz is not None)
    raise Undecodable(f"a message key for a column of type {kind}")


def _fitting(number: int, kind: pa.DataType) -> int:
    limit = 1 << (kind.bit_width - 1)
    if not -limit <= number < limit:
        raise Undecodable(f"a message key that is not {kind}: {number}")
    return number
