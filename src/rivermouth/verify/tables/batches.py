"""Batches of rows: canonical values, Kafka coordinates, rows as tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition


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
        partition = (str(names.dictionary[code].as_py()), int(number))
        found.append(Coordinates(partition, rows[here], at[here]))
    return found, len(topics) - len(rows)


def field(batch: pa.RecordBatch, struct: str, name: str) -> pa.Array:
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
