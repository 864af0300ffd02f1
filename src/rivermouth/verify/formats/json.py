"""JSON records and message keys, read by the table's Arrow schema.

Written from the documented behaviour of Spark's ``from_json``. One reader serves values and
message keys: both are JSON objects that hold columns by their names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.json_values import Number, converter
from rivermouth.verify.formats.reader import Reader, Undecodable

_SCANNER = json.JSONDecoder(parse_float=Number)


def reader(schema: pa.Schema, columns: Sequence[str]) -> Reader:
    """A reader of ``columns`` out of one JSON object; see ``Reader``."""
    converters = [(name, converter(schema.field(name).type)) for name in columns]

    def read(value: bytes) -> tuple[Any, ...]:
        found = parse_object(value)
        return tuple(
            None if (held := found.get(name)) is None else convert(held)
            for name, convert in converters
        )

    return read


def parse_object(value: bytes) -> dict[str, Any]:
    """The JSON object at the start of ``value``; the last of several equal names wins.

    Raises Undecodable where there is none.
    """
    text = value.decode("utf-8", "replace")
    try:
        parsed, _ = _SCANNER.raw_decode(text.lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as fault:
        raise Undecodable(f"not JSON: {fault}") from fault
    if not isinstance(parsed, dict):
        raise Undecodable("not a JSON object")
    return parsed
