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

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile
from rivermouth.warehouse.delta.partitions import Partition, apart, folder_of_partition
from rivermouth.warehouse.delta.statistics import Leaf, Statistics

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

    store: Store
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

    def is_whole(self, store: Store) -> bool:
        """Whether it is still there, as it was written."""
        return store.size(self.name) == self.size


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
        with suppress(OSError):
            self._folder.store.delete(each.name for each in self._done)

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
        self._statistics, self._tight = Statistics(folder.leaves), folder.tight
        self._upload = folder.store.upload(self.name)
        try:
            self._parquet = pq.ParquetWriter(
                self._upload.file,
                schema,
                compression="zstd",
                store_schema=False,
                store_decimal_as_integer=True,
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                write_statistics=list(bounded(schema)),
            )
        except BaseException:
            self._upload.discard()
            raise

    @property
    def size(self) -> int:
        return self._upload.size

    @property
    def rows(self) -> int:
        return self._statistics.records

    def write(self, rows: pa.Table) -> None:
        for each in rows.to_batches():
            self._statistics.add(each)
        self._parquet.write_table(rows, row_group_size=GROUP_ROWS)

    def closed(self) -> DataFile:
        self._parquet.close()
        found = self._upload.finished()
        said = self._statistics.json(tight=self._tight)
        return DataFile(self.name, found.size, found.modified_ms, said, self.rows, self._partition)

    def remove(self) -> None:
        with suppress(OSError, pa.ArrowException):
            self._parquet.close()
        self._upload.discard()
