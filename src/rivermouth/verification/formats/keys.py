"""Message keys that are one plain value, and plain text as a value of a column.

A text stands for what is spelt so in JSON: a number, ``true`` or ``false``, or a text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json import converter
from rivermouth.verification.formats.json_document import Spelt
from rivermouth.verification.formats.json_scalars import Settings, is_json_number, settings_of
from rivermouth.verification.formats.reader import Reader, Undecodable

_SHORT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_TRUTH = {"true": True, "false": False}


def from_text(kind: pa.DataType, settings: Settings) -> Callable[[str], Any]:
    """What reads the canonical value (see ``Reader``) of a text. It raises Undecodable."""
    convert = converter(kind, settings)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str

    def read(text: str) -> Any:
        if _SHORT.fullmatch(text) and text != "-0":
            return convert(int(text))
        if is_json_number(text):
            return convert(Spelt(text))
        return convert(_TRUTH.get(text, text))

    return read


def string(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """Reads the key as text, for the type of the single column. BINARY is the key itself."""
    kind = _only(schema, columns)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda key: (key,)
    from_key = from_text(kind, settings_of(decoder))

    def read(key: bytes) -> tuple[Any, ...]:
        try:
            # Bytes that are no UTF-8 stay what they are: such a key is that of no record's text.
            return (from_key(key.decode("utf-8", "surrogateescape")),)
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
        if number.bit_length() >= kind.bit_width and number != -1 << (kind.bit_width - 1):
            raise Undecodable(f"a message key that is not {kind}: {number}")
        return (number,)

    return read


def _only(schema: pa.Schema, columns: Sequence[str]) -> pa.DataType:
    """The type of the one column that a plain key holds."""
    [name] = columns
    return schema.field(name).type
