"""JSON records and message keys, read by the table's Arrow schema.

It reads as Spark's ``from_json`` does; ``text`` says in what that differs from JSON. One
reader serves values and message keys: both are JSON objects that hold columns by their names. Of
several equal names the last one counts, and none of them may hold what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.from_json.text import parse_object
from rivermouth.verify.formats.from_json.values import Convert, converter, longest
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Reader, Undecodable

_TEXT = 20_000_000
"""A longer text does not fit into Spark's parser."""


def reader(schema: pa.Schema, columns: Sequence[str]) -> Reader:
    """A reader of ``columns`` out of one JSON object; see ``Reader``."""
    known = {name: converter(schema.field(name).type) for name in columns}
    binary = any(_holds_binary(schema.field(name).type) for name in columns)

    def read(value: bytes) -> tuple[Any, ...]:
        found = parse_object(value, binary=binary)
        if len(value) > _TEXT and longest(held for name, held in found if name in known) > _TEXT:
            raise Undecodable(f"a text of more than {_TEXT:,} characters")
        by_name = dict(found)
        if len(by_name) < len(found):
            _check_all(known, found)
        return tuple(
            None if (held := by_name.get(name)) is None else _told(convert, held)
            for name, convert in known.items()
        )

    return read


def _told(convert: Convert, held: Any) -> Any:
    try:
        return convert(held)
    except (CannotTell, RecursionError):
        return NOT_VERIFIABLE


def _check_all(known: dict[str, Convert], found: Iterable[tuple[str, Any]]) -> None:
    """Raises Undecodable where a name that comes again holds what does not fit."""
    for name, held in found:
        if name in known and held is not None:
            _told(known[name], held)


def _holds_binary(kind: pa.DataType) -> bool:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    inner = [kind.field(each).type for each in range(kind.num_fields)]
    return any(map(_holds_binary, inner))
