"""Message keys that are one plain value: text, or a whole number of eight bytes.

Written from the documented behaviour of Spark's ``try_cast``. They take no settings.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.reader import Reader, Undecodable
from rivermouth.verification.formats.scalars import TRIMMED, days, decimal, micros, single

_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_SPACES = "".join(map(chr, range(0x21)))
_DIGITS = 1_000
"""Whole numbers of more digits fit no column, whatever their leading zeros."""
_WHOLE = re.compile(r"[+-]?[0-9]+")


def from_text(kind: pa.DataType) -> Callable[[str], Any]:
    """What casts text to the canonical value (see ``Reader``) of a type.

    It raises Undecodable for a text that does not fit. Raises Undecodable for an unknown type.
    """
    cast = _cast(kind)

    def read(text: str) -> Any:
        try:
            return cast(text)
        except ValueError as fault:
            raise Undecodable(f"not {kind}: {text!r}") from fault

    return read


def fits(number: int, kind: pa.DataType) -> bool:
    """Whether a column of that type, one of whole numbers, can hold the number."""
    limit = 1 << (kind.bit_width - 1)
    return bool(-limit <= number < limit)


def _integer(text: str, kind: pa.DataType) -> int:
    whole = text.strip(TRIMMED)
    if not _WHOLE.fullmatch(whole) or len(whole) > _DIGITS or not fits(int(whole), kind):
        raise ValueError("no whole number of that size")
    return int(whole)


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.strip(TRIMMED).lower())
    if found is None:
        raise ValueError("neither true nor false")
    return found


def _cast(kind: pa.DataType) -> Callable[[str], Any]:
    """Casts text to a type; what it returns raises ValueError."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str
    if pa.types.is_integer(kind):
        return lambda text: _integer(text, kind)
    if pa.types.is_floating(kind):
        return float if kind.bit_width == 64 else lambda text: single(float(text))
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_decimal(kind):
        return lambda text: decimal(text.strip(_SPACES), kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return days
    if pa.types.is_timestamp(kind):
        return lambda text: micros(text, local=kind.tz is None)
    raise Undecodable(f"text for a column of type {kind}")


def string(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """Reads the key as text, cast to the type of the single column."""
    kind = _only(schema, columns)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda key: (key,)
    cast = from_text(kind)

    def read(key: bytes) -> tuple[Any, ...]:
        try:
            # Bytes that are no UTF-8 stay what they are: such a key is that of no record's text.
            return (cast(key.decode("utf-8", "surrogateescape")),)
        except Undecodable as fault:
            raise Undecodable(f"a message key that is {fault}") from fault

    return read


def long(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """Reads the key as Kafka's LongSerializer writes it: eight bytes, big-endian, signed."""
    kind = _only(schema, columns)
    if not pa.types.is_integer(kind):
        raise Undecodable(f"a message key of eight bytes for a column of type {kind}")

    def read(key: bytes) -> tuple[Any, ...]:
        if len(key) != 8:
            raise Undecodable(f"a message key of {len(key)} bytes, expected 8")
        number = struct.unpack(">q", key)[0]
        if not fits(number, kind):
            raise Undecodable(f"a message key that is not {kind}: {number}")
        return (number,)

    return read


def _only(schema: pa.Schema, columns: Sequence[str]) -> pa.DataType:
    """The type of the one column that a plain key holds."""
    [name] = columns
    return schema.field(name).type
