"""The checker's own decoding of records and message keys, by the table's Arrow schema.

Written from the documented behaviour of Spark's ``from_json``, sharing nothing with it.
It is only asked about records that are *not* in quarantine, so it need not find every
fault; where it cannot tell a value it raises ``Undecodable``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.json_values import Number, converter, or_none
from rivermouth.verify.formats.text import Undecodable

_SCANNER = json.JSONDecoder(parse_float=Number)


def parse_object(value: bytes) -> dict[str, Any]:
    """The JSON object that ``value`` starts with; later duplicates of a name win."""
    text = value.decode("utf-8", "replace")
    try:
        parsed, _ = _SCANNER.raw_decode(text.lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as fault:
        raise Undecodable(f"not JSON: {fault}") from fault
    if not isinstance(parsed, dict):
        raise Undecodable("not a JSON object")
    return parsed


class RowDecoder:
    """Decodes values by the table's schema, all columns or some of them."""

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        self._converts = [(name, converter(schema.field(name).type)) for name in columns]

    def row(self, parsed: Mapping[str, Any]) -> tuple[Any, ...]:
        """The columns of a parsed object, in order; None where it has none."""
        return tuple(or_none(convert, parsed.get(name)) for name, convert in self._converts)


class KeyDecoder:
    """Reads the key columns out of the Kafka message key of a tombstone.

    ``form`` is string, long or json; the first two hold a single column.
    """

    def __init__(self, form: str, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._form = form
        self._type = schema.field(keys[0]).type
        self._decoder = RowDecoder(schema, keys)

    def row(self, key: bytes | None) -> tuple[Any, ...]:
        """The key columns; raises ``Undecodable`` where one of them is not there."""
        if key is None:
            raise Undecodable("no message key")
        if self._form == "json":
            found = self._decoder.row(parse_object(key))
        elif self._form == "long":
            if len(key) != 8:
                raise Undecodable("a message key that is not eight bytes")
            found = (converter(self._type)(struct.unpack(">q", key)[0]),)
        else:
            found = (_cast(key, self._type),)
        if any(value is None for value in found):
            raise Undecodable("a key column is null")
        return found


def _cast(key: bytes, kind: pa.DataType) -> Any:
    """A message key as text, cast to the type of its column."""
    if pa.types.is_binary(kind):
        return key
    text = key.decode("utf-8", "replace")
    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return text.strip().lower() in ("t", "true", "y", "yes", "1")
    try:
        return converter(kind)(int(text) if pa.types.is_integer(kind) else text.strip())
    except ValueError as fault:
        raise Undecodable(f"a message key that is not {kind}: {text!r}") from fault


def differences(names: Sequence[str], expected: Sequence[Any], found: Sequence[Any]) -> str:
    """The names of the columns whose values differ; empty where none does."""
    pairs = zip(names, expected, found, strict=True)
    differing = [name for name, a, b in pairs if a != b and repr(a) != repr(b)]
    return f"other values in {', '.join(differing)}" if differing else ""
