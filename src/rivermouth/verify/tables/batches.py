"""Reading a table as it stands at one version: batches of coordinates and canonical values.

A folder is read through delta-rs, which applies deletion vectors and column mapping; Spark is
not involved.
Rows come in batches of a few thousand, in no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError
from numpy.typing import NDArray

from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Place

# Spark writes INT96 by default; read as nanoseconds, years before 1678 and after 2262 wrap.
_ENGINE = {"datafusion.execution.parquet.coerce_int96": "us"}


class Unreadable(Exception):
    """The table cannot be read; the text says why."""


class Rows(Protocol):
    """The rows of a table as it stands at one version."""

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""

    def transaction(self, app: str) -> int | None:
        """The version of the newest ``txn`` of ``app`` in the snapshot; 0 where there is none,
        None where nobody can tell.
        """

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows, projected to ``columns``, with canonical values (see ``converters``)."""


class FolderRows:
    """The rows of the table at ``path``, at ``version`` (None: the newest)."""

    def __init__(self, path: Path, version: int | None = None) -> None:
        try:
            self._table = DeltaTable(str(path), version=version)
            self._schema = pa.schema(self._table.schema().to_arrow())
        except (DeltaError, TableNotFoundError) as fault:
            raise Unreadable(f"{path.parent.name}.{path.name}: {fault}") from fault

    @property
    def schema(self) -> pa.Schema:
        """See ``Rows``."""
        return self._schema

    def transaction(self, app: str) -> int:
        """See ``Rows``."""
        return self._table.transaction_version(app) or 0

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See ``Rows``."""
        named = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        statement = f"SELECT {named} FROM rows" + (f" WHERE {predicate}" if predicate else "")
        try:
            engine = QueryBuilder(_ENGINE).register("rows", self._table)
            for batch in pa.RecordBatchReader.from_stream(engine.execute(statement)):
                yield canonical(batch)
        except (DeltaError, pa.ArrowException, OSError) as fault:
            raise Unreadable(str(fault)) from fault


def canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in types whose Python values are the canonical ones."""
    plain = [column.cast(_plain(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


@dataclass(frozen=True)
class Coordinates:
    """Which rows of a batch came from one partition: their row numbers and offsets."""

    place: Place
    rows: NDArray[np.int64]
    offsets: Offsets


def coordinates(
    topics: pa.Array, partitions: pa.Array, offsets: pa.Array
) -> tuple[list[Coordinates], int]:
    """The rows of a batch by partition, and how many rows have no coordinates."""
    known = pc.and_(pc.and_(topics.is_valid(), partitions.is_valid()), offsets.is_valid())
    rows = np.flatnonzero(known.to_numpy(zero_copy_only=False))
    taken = pa.array(rows)
    names = topics.take(taken).dictionary_encode()
    numbers = partitions.take(taken).to_numpy(zero_copy_only=False).astype(np.int64)
    at = offsets.take(taken).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found: list[Coordinates] = []
    for code, number in sorted({*zip(codes.tolist(), numbers.tolist(), strict=True)}):
        here = np.flatnonzero((codes == code) & (numbers == number))
        place = (str(names.dictionary[code].as_py()), int(number))
        found.append(Coordinates(place, rows[here], at[here]))
    return found, len(topics) - len(rows)


def field(batch: pa.RecordBatch, struct: str, name: str) -> pa.Array:
    """One field of a struct column."""
    return pc.struct_field(batch.column(struct), name)


def tuples(batch: pa.RecordBatch, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a batch as tuples of the named columns."""
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
