"""What the checker asks of tables, wherever they are, and the rows that it gets.

The columns of records are read from the table where it has them. A table of totals does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rivermouth.config import Column, TableName
from rivermouth.verification.ledger.coverage import Offsets
from rivermouth.verification.ledger.entry import Commits, Partition


class Unreadable(Exception):
    """A table, or a part of it, cannot be read; the text says why."""


class Rows(Protocol):
    """The rows of a table at one version."""

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""

    def transaction(self, app: str) -> int | None:
        """The version of the newest ``txn`` of ``app`` in the snapshot.

        0 where there is none, None where the warehouse does not tell.
        """

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows, in no order, with ``columns`` only, in canonical values (see ``Reader``).

        ``predicate`` is a condition in SQL. Raises Unreadable.
        """


class Tables(Protocol):
    """All tables of a configuration. Each method raises Unreadable for what cannot be read."""

    def commits(self, table: TableName) -> Commits:
        """The log of a table."""

    def rows(self, table: TableName, version: int | None = None) -> Rows:
        """The rows of a table at ``version`` (None: the newest)."""

    def exist(self, table: TableName) -> bool:
        """Whether there is such a table."""


def canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in types whose Python values are the canonical ones, see ``Reader``."""
    plain = [column.cast(_plain(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


@dataclass(frozen=True)
class Coordinates:
    """Which rows of a batch came from one partition: their row numbers and offsets."""

    partition: Partition
    rows: NDArray[np.int64]
    offsets: Offsets


def coordinates(batch: pa.RecordBatch, struct: str | None = None) -> tuple[list[Coordinates], int]:
    """The rows of a batch by partition, and how many rows have no coordinates.

    ``struct``: the column that holds topic, partition and offset; None: they are columns.
    """
    names = ("topic", "partition", "offset")
    topics, partitions, offsets = (
        batch.column(each) if struct is None else row_field(batch, struct, each) for each in names
    )
    known = pc.and_(pc.and_(topics.is_valid(), partitions.is_valid()), offsets.is_valid())
    rows = np.flatnonzero(known.to_numpy(zero_copy_only=False))
    taken = pa.array(rows)
    known_topics = topics.take(taken).dictionary_encode()
    numbers = partitions.take(taken).to_numpy(zero_copy_only=False).astype(np.int64)
    at = offsets.take(taken).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = known_topics.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found: list[Coordinates] = []
    for code, number in sorted({*zip(codes.tolist(), numbers.tolist(), strict=True)}):
        here = np.flatnonzero((codes == code) & (numbers == number))
        partition = (str(known_topics.dictionary[code].as_py()), int(number))
        found.append(Coordinates(partition, rows[here], at[here]))
    return found, len(topics) - len(rows)


def row_field(batch: pa.RecordBatch, struct: str, name: str) -> pa.Array:
    """One field of a struct column."""
    return pc.struct_field(batch.column(struct), name)


def tuples(batch: pa.RecordBatch, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a batch as tuples of the named columns, which may be none."""
    if not columns:
        return [()] * batch.num_rows
    return list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with the same bits whose Python values are the canonical ones."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


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
        return pa.list_(*(each for _, each in _inner(tokens)))
    if word == "MAP":
        return pa.map_(*(each for _, each in _inner(tokens)))
    if word == "STRUCT":
        return pa.struct([*_inner(tokens, named=True)])
    return _SIMPLE[word]


def _inner(tokens: list[str], *, named: bool = False) -> Iterator[tuple[str, pa.DataType]]:
    """The types between ``<`` and ``>``, with their names where they are ``named``."""
    token = tokens.pop()
    while token != ">":
        name = tokens.pop().strip("`") if named else ""
        if named:
            tokens.pop()  # the colon
        yield name, _type(tokens)
        token = tokens.pop()
