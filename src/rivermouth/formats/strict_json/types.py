"""What a pipeline says of its JSON records, and the Arrow types of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

if TYPE_CHECKING:  # tasks import this module, and need nothing of a configuration
    from rivermouth.config import Column

Unit = Literal["s", "ms", "us", "ns"]
Leniency = Literal[
    "number_in_text",
    "anything_as_text",
    "repeated_names",
    "any_case",
    "boolean_in_text",
    "count_in_text",
    "fraction_in_count",
    "date_as_time",
]

DEPTH = 500
"""The most objects and arrays in each other."""


@dataclass(frozen=True)
class JsonSettings:
    """``unit``: what a whole number in a TIMESTAMP counts; None refuses numbers. ``cut``: what is
    less than a microsecond is cut. ``lenient``: what is taken beside. ``empty``: a record without a
    field of the columns is a row of nulls; else it is bad.
    """

    unit: Unit | None = None
    cut: bool = False
    lenient: frozenset[Leniency] = frozenset()
    empty: bool = False


def settings_of(settings: Mapping[str, Any]) -> JsonSettings:
    """The settings of a source, as the ledger names them."""
    times = settings.get("timestamps", {})
    lenient = frozenset(settings.get("lenient", ()))
    cut, empty = times.get("fraction") == "cut", settings.get("on_empty") == "null"
    return JsonSettings(times.get("unit"), cut, lenient, empty)


_TOKEN = re.compile(r"`[^`]*`|[^\s<>(),:`]+|[<>(),:]")
SIMPLE: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_NAMES = {kind: name for name, kind in SIMPLE.items()}


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The columns as Arrow has them. Raises ValueError for a type that is not known."""
    return pa.schema([(each.name, _whole(each.type)) for each in columns])


def sql_name(kind: pa.DataType) -> str:
    """The name that a user knows, without what is inside: ``STRUCT``, ``DECIMAL(12,2)``."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    for test, name in (
        (pa.types.is_struct, "STRUCT"),
        (pa.types.is_list, "ARRAY"),
        (pa.types.is_map, "MAP"),
    ):
        if test(kind):
            return name
    return _NAMES[kind]


def holds_map(kind: pa.DataType) -> bool:
    """Whether a MAP is the type or is somewhere inside."""
    return pa.types.is_map(kind) or any(
        holds_map(kind.field(index).type) for index in range(kind.num_fields)
    )


def _whole(text: str) -> pa.DataType:
    tokens = _TOKEN.findall(text)[::-1]
    try:
        found = _type(tokens)
    except LookupError as fault:
        raise ValueError(f"{text} is not a type of a column") from fault
    if tokens:
        raise ValueError(f"{text} is not a type of a column")
    return found


def _type(tokens: list[str]) -> pa.DataType:
    """Takes one type from the end of the tokens."""
    word = tokens.pop()
    if word == "DECIMAL":
        _, precision, _, scale, _ = (tokens.pop() for _ in range(5))
        return pa.decimal128(int(precision), int(scale))
    if word == "ARRAY":
        tokens.pop()
        inner = pa.list_(_type(tokens))
        tokens.pop()
        return inner
    if word == "MAP":
        del tokens[-3:]  # <STRING,
        inner = pa.map_(pa.string(), _type(tokens))
        tokens.pop()
        return inner
    if word == "STRUCT":
        return pa.struct(_fields(tokens))
    return SIMPLE[word]


def _fields(tokens: list[str]) -> list[pa.Field]:
    found: list[pa.Field] = []
    while tokens.pop() != ">":
        name = tokens.pop().strip("`")
        tokens.pop()  # the colon
        found.append(pa.field(name, _type(tokens)))
    return found
