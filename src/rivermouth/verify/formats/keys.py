"""Message keys that are one plain value: text, or a whole number of eight bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Reader, Undecodable
from rivermouth.verify.formats.texts import fits, from_text


def string(schema: pa.Schema, columns: Sequence[str]) -> Reader:
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


def long(schema: pa.Schema, columns: Sequence[str]) -> Reader:
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
