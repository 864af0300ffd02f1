"""Arrow types of columns that are known by their SQL text alone.

The columns of records are read from the table where it has them. A table of totals does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from rivermouth.config import Column
from rivermouth.verify.tables.ports import Unreadable

_TOKEN = re.compile(r"`[^`]*`|\w+|[<>(),:]")
_SIMPLE: Mapping[str, pa.DataType] = {
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


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The columns as Arrow has them. Raises Unreadable for a type that is not known."""
    return pa.schema([(each.name, type_of(each.type)) for each in columns])


def type_of(text: str) -> pa.DataType:
    """The Arrow type of normalised SQL text, such as ``MAP<STRING, DECIMAL(12,2)>``.

    Raises Unreadable for a type that is not known.
    """
    tokens = _TOKEN.findall(text)[::-1]
    try:
        found = _type(tokens)
    except (LookupError, ValueError) as fault:
        raise Unreadable(f"verify does not know the type {text}") from fault
    if tokens:
        raise Unreadable(f"verify does not know the type {text}")
    return found


def _type(tokens: list[str]) -> pa.DataType:
    """Takes one type from the end of the tokens."""
    word = tokens.pop()
    if word == "DECIMAL":
        _, precision, _, scale, _ = (tokens.pop() for _ in range(5))
        return pa.decimal128(int(precision), int(scale))
    if word == "ARRAY":
        return pa.list_(_within(tokens)[0])
    if word == "MAP":
        return pa.map_(*_within(tokens))
    if word == "STRUCT":
        return pa.struct(_fields(tokens))
    return _SIMPLE[word]


def _within(tokens: list[str]) -> list[pa.DataType]:
    """The types between ``<`` and ``>``."""
    found: list[pa.DataType] = []
    mark = tokens.pop()
    while mark != ">":
        found.append(_type(tokens))
        mark = tokens.pop()
    return found


def _fields(tokens: list[str]) -> list[pa.Field]:
    """The named types between ``<`` and ``>``."""
    found: list[pa.Field] = []
    mark = tokens.pop()
    while mark != ">":
        name = tokens.pop().strip("`")
        tokens.pop()  # the colon
        found.append(pa.field(name, _type(tokens)))
        mark = tokens.pop()
    return found
