"""The rows of a data file, as the table has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile
from rivermouth.warehouse.delta.partitions import values_of
from rivermouth.warehouse.delta.vectors import deleted_rows

_AT_ONCE = 1 << 14
"""Of so many rows some are taken at once."""
_NONE: Mapping[str, pa.Scalar] = {}


def live_rows(store: Store, file: AddFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file that no vector deletes, as a table of ``schema`` has them.

    Raises what the store does.
    """
    deleted, first = deleted_rows(store, file.vector), 0
    gone = np.fromiter(deleted, np.int64, len(deleted))
    constants = values_of(file.partition, schema)
    with store.opened(file.path) as opened:
        parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        named = [each for each in schema.names if each in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(_AT_ONCE, columns=named):
            until = first + batch.num_rows
            here = gone[slice(*np.searchsorted(gone, [first, until]))] - first
            kept = np.ones(batch.num_rows, np.bool_)
            kept[here] = False
            first = until
            rows = as_table(batch.cast(_plain_schema(batch.schema)), schema, constants)
            yield rows.filter(pa.array(kept))


def read_columns(
    store: Store,
    path: str,
    columns: Sequence[str] | None,
    rows: npt.NDArray[np.integer] | None = None,
) -> pa.Table:
    """Some columns of a data file, None: all of them. Of all rows, or of those with the numbers
    ``rows``, in this order. Raises what the store does.
    """
    with store.opened(path) as opened:
        # Spark may write times as Parquet's INT96, which has nanoseconds.
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        names = None if columns is None else [*columns]
        if rows is not None:
            return _taken(file, names, rows)
        table = file.read(columns=names)
        return table.cast(_plain_schema(table.schema)) if table.num_columns else table


def _taken(
    file: pq.ParquetFile, columns: list[str] | None, rows: npt.NDArray[np.integer]
) -> pa.Table:
    """Some rows, of whose row groups few batches are in memory at once."""
    order = np.argsort(rows, kind="stable")
    wanted, begins, found = rows[order].astype(np.int64), 0, list[pa.RecordBatch]()
    for group in range(file.num_row_groups):
        first, begins = begins, begins + file.metadata.row_group(group).num_rows
        if np.searchsorted(wanted, first) == np.searchsorted(wanted, begins):
            continue
        for batch in file.iter_batches(_AT_ONCE, [group], columns):
            until = first + batch.num_rows
            these = wanted[slice(*np.searchsorted(wanted, [first, until]))] - first
            # Without columns a cast would forget how many rows there are.
            plain = batch.cast(_plain_schema(batch.schema)) if batch.num_columns else batch
            found.append(plain.take(pa.array(these)))
            first = until
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    taken = pa.Table.from_batches(found)
    return taken.take(pa.array(back)) if taken.num_columns else taken


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each.with_type(_plain(each.type)) for each in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without views, of which Arrow cannot take some: delta-rs notes them in its files."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_plain(each.type)) for each in kind])
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return views.get(kind, kind)


def as_table(
    rows: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, pa.Scalar] = _NONE
) -> pa.RecordBatch:
    """The rows with the columns of the table; where their file lacks one, with the value in
    ``constants``, or null.
    """
    arrays = _fields(rows, schema, rows.num_rows, constants)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fields(
    given: pa.RecordBatch | pa.StructArray,
    wanted: pa.Schema | pa.StructType,
    rows: int,
    constants: Mapping[str, pa.Scalar] = _NONE,
) -> list[pa.Array]:
    found = []
    struct = isinstance(given, pa.StructArray)
    names = {each.name for each in (given.type if struct else given.schema)}
    for each in wanted:
        if each.name not in names:
            found.append(pa.repeat(constants.get(each.name, pa.scalar(None, each.type)), rows))
            continue
        column = given.field(each.name) if struct else given.column(each.name)
        found.append(_conformed(column, each.type))
    return found


def _conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind) or column.type == kind:
        return column.cast(kind)
    fields = _fields(column, kind, len(column))
    return pa.StructArray.from_arrays(fields, fields=[*kind], mask=column.is_null())
