"""One data file of a task: its rows, what the log is to say of it, and the counts of its ranges.

Its name is new for each attempt at a task. So what a task leaves behind that died, was tried again
or ran twice, is named by no commit, and VACUUM removes it. A file is on the disk before its task
tells of it: if the power fails, no commit names a file that is not whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.warehouse.delta.actions import AddFile
from rivermouth.warehouse.delta.store import Store, sync
from rivermouth.write.files.partitions import Partition, apart, folder_of_partition
from rivermouth.write.files.statistics import Leaf, Statistics

GROUP_ROWS, GROUP_BYTES = 1 << 20, 128 << 20
"""A row group has at most so many rows; it ends with the batch that brings it to so many bytes."""
FILE_BYTES = 512 << 20
"""So large files are to be where the table does not say."""
_DICTIONARY_BYTES = 1 << 16
"""A column with more bytes of distinct values is written plainly. With the default of 1 MB those of
almost distinct values take longer and more room: 100,000 bids a fifth and a sixth."""
_AT_ONCE = 1 << 14
"""Of so many rows some are taken at once."""
_NONE: Mapping[str, pa.Scalar] = {}

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Folder:
    """Where files of a table go, and what is noted of them.

    ``tight``: the table may have deletion vectors, see ``Statistics.json``. ``partitions`` are its
    partition columns. A file ends with the row group that brings it to ``file_bytes``; None: to
    ``FILE_BYTES``.
    """

    path: str
    leaves: Sequence[Leaf]
    tight: bool
    partitions: Sequence[Leaf] = ()
    file_bytes: int | None = None


@dataclass(frozen=True)
class DataFile:
    """A file that was written, and that no commit names yet. ``name`` is its path below the table.

    ``partition``: see ``AddFile``.
    """

    name: str
    size: int
    modified_ms: int
    statistics: str
    rows: int
    partition: Partition = field(default_factory=dict)

    @property
    def added(self) -> AddFile:
        """The file as a commit adds it."""
        return AddFile(self.name, self.size, self.modified_ms, self.statistics, self.partition)

    def to_json(self) -> str:
        """Its parts by name."""
        return json.dumps(vars(self))

    @staticmethod
    def from_json(text: str) -> DataFile:
        """The file that ``to_json`` has described."""
        return DataFile(**json.loads(text))

    def is_whole(self, folder: Path) -> bool:
        """Whether it is still there, as it was written."""
        try:
            return (folder / self.name).stat().st_size == self.size
        except FileNotFoundError:
            return False


@dataclass(frozen=True)
class Placed:
    """Where rows are: for each the number of its file among ``files``, and its number in that."""

    files: Sequence[str]
    file: Integers
    row: Integers


NOTHING_PLACED = Placed((), np.empty(0, np.int64), np.empty(0, np.int64))


class Files:
    """Writes the rows of one task into files of ``folder``; the first row begins one.

    A row group is written at once. Where the table is partitioned, its rows become a file for each
    value: so one file is open at a time, however many values there are. ``within``: all rows are of
    this partition, and lack its columns.
    """

    def __init__(self, folder: Folder, task: int, within: Partition | None = None) -> None:
        self._folder, self._task, self._within = folder, task, within
        self._columns = folder.partitions if within is None else ()
        self._group_bytes = min(GROUP_BYTES, folder.file_bytes or GROUP_BYTES)
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._open: _OpenFile | None = None
        self._done: list[DataFile] = []

    def placed(self, rows: pa.RecordBatch) -> tuple[Placed, list[DataFile]]:
        """Take rows; return where they are, and the files that this completed.

        Those of each partition become a file at once.
        """
        file, row = np.zeros(rows.num_rows, np.int64), np.arange(rows.num_rows)
        if not self._columns:
            if self._open is None:
                self._open = self._begun(rows.schema, self._within or {})
            name, row = self._open.name, row + self._open.rows + self._rows
            return Placed((name,), file, row), self.add(rows)
        done = list[DataFile]()
        for number, (partition, part, these) in enumerate(
            apart(pa.Table.from_batches([rows]), self._columns)
        ):
            file[these], row[these] = number, np.arange(len(these))
            done.append(self._whole(partition, part))
        return Placed([each.name for each in done], file, row), done

    def add(self, rows: pa.RecordBatch) -> list[DataFile]:
        """Take rows; return the files that this completed."""
        if not rows.num_rows:
            return []
        self._gathered.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows < GROUP_ROWS and self._bytes < self._group_bytes:
            return []
        return self._written()

    def end(self) -> list[DataFile]:
        """Complete what is open; return the files that this completed."""
        done = self._written() if self._gathered else []
        return done if self._open is None else [*done, self._closed(self._open)]

    def discard(self) -> None:
        """Remove all files: their task has failed, so that nobody will hear of them."""
        if self._open is not None:
            self._open.remove()
        for each in self._done:
            with suppress(OSError):
                Path(self._folder.path, each.name).unlink()

    def _written(self) -> list[DataFile]:
        """Write what is gathered; the files that this completed."""
        most = self._folder.file_bytes or FILE_BYTES
        gathered = pa.Table.from_batches(self._gathered)
        self._gathered, self._rows, self._bytes = [], 0, 0
        if self._columns:
            return [self._whole(of, rows) for of, rows, _ in apart(gathered, self._columns)]
        if self._open is None:
            self._open = self._begun(gathered.schema, self._within or {})
        self._open.write(gathered)
        return [self._closed(self._open)] if self._open.size >= most else []

    def _whole(self, partition: Partition, rows: pa.Table) -> DataFile:
        """A file of these rows alone."""
        self._open = self._begun(rows.schema, partition)
        self._open.write(rows)
        return self._closed(self._open)

    def _begun(self, schema: pa.Schema, partition: Partition) -> _OpenFile:
        return _OpenFile(self._folder, self._task, schema, partition)

    def _closed(self, file: _OpenFile) -> DataFile:
        done = file.closed()
        self._open = None  # not before: a file that cannot be completed is discarded
        self._done.append(done)
        return done


def bounded(columns: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """The columns, and fields of structs, of which a row group tells the least and the greatest.

    None is of floating numbers: pyarrow leaves NaN out, which Spark takes for the greatest, and a
    reader would skip its rows. What the log says of a file knows NaN.
    """
    for each in columns:
        if pa.types.is_struct(each.type):
            yield from bounded(each.type, f"{above}{each.name}.")
        elif not pa.types.is_nested(each.type) and not pa.types.is_floating(each.type):
            yield above + each.name


class _OpenFile:
    def __init__(self, folder: Folder, task: int, schema: pa.Schema, partition: Partition) -> None:
        self._partition = partition
        below = folder_of_partition(partition)
        self.name = f"{below}part-{task:05d}-{uuid.uuid4()}.zstd.parquet"
        self._path = Path(folder.path, self.name)
        if below:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._statistics, self._tight = Statistics(folder.leaves), folder.tight
        self._sink = pa.OSFile(str(self._path), "wb")
        try:
            self._parquet = pq.ParquetWriter(
                self._sink,
                schema,
                compression="zstd",
                store_schema=False,
                store_decimal_as_integer=True,
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                write_statistics=list(bounded(schema)),
            )
        except BaseException:
            self._sink.close()
            self._path.unlink(missing_ok=True)
            raise

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    @property
    def rows(self) -> int:
        return self._statistics.records

    def write(self, rows: pa.Table) -> None:
        for each in rows.to_batches():
            self._statistics.add(each)
        self._parquet.write_table(rows, row_group_size=GROUP_ROWS)

    def closed(self) -> DataFile:
        self._parquet.close()
        self._sink.close()
        sync(self._path)
        found = self._path.stat()
        said = self._statistics.json(tight=self._tight)
        at_ms = found.st_mtime_ns // 1_000_000
        return DataFile(self.name, found.st_size, at_ms, said, self.rows, self._partition)

    def remove(self) -> None:
        for each in (self._parquet, self._sink):
            with suppress(OSError, pa.ArrowException):
                each.close()
        with suppress(OSError):
            self._path.unlink()


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
