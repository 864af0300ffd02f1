"""One data file of a task: its rows, what the log is to say of it, and the counts of its ranges.

Its name is new for each attempt at a task. So what a task leaves behind that died, was tried again
or ran twice, is named by no commit, and VACUUM removes it. A file is on the disk before its task
tells of it: if the power fails, no commit names a file that is not whole.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rivermouth.errors import BatchFailed
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.warehouse.delta.store import sync
from rivermouth.write.files.statistics import Leaf, Statistics

GROUP_ROWS, GROUP_BYTES = 1 << 20, 128 << 20
"""A row group has at most so many rows; it ends with the batch that brings it to so many bytes."""
FILE_BYTES = 512 << 20
"""A file ends with the row group that brings it to so many bytes."""
_DICTIONARY_BYTES = 1 << 16
"""A column with more bytes of distinct values is written plainly. With the default of 1 MB those of
almost distinct values take longer and more room: 100,000 bids a fifth and a sixth."""

Places = Mapping[tuple[str, int], int]
"""Numbers by topic and partition."""


@dataclass(frozen=True)
class Folder:
    """Where files of a table go, and what is noted of them.

    ``tight``: the table may have deletion vectors, see ``Statistics.json``.
    """

    path: str
    leaves: Sequence[Leaf]
    tight: bool


@dataclass(frozen=True)
class DataFile:
    """A file that was written, and that no commit names yet. ``records`` are those in it."""

    name: str
    size: int
    modified_ms: int
    statistics: str
    records: Places

    def to_json(self) -> str:
        """Its parts by name; ``records`` is a list of topic, partition and number."""
        return json.dumps({**vars(self), "records": [[*at, n] for at, n in self.records.items()]})

    @staticmethod
    def from_json(text: str) -> DataFile:
        """The file that ``to_json`` has described."""
        parts = json.loads(text)
        records = {(topic, partition): n for topic, partition, n in parts.pop("records")}
        return DataFile(**parts, records=records)

    def is_whole(self, folder: Path) -> bool:
        """Whether it is still there, as it was written."""
        try:
            return (folder / self.name).stat().st_size == self.size
        except FileNotFoundError:
            return False


class Files:
    """Writes the rows of one task into files of ``folder``; the first row begins one."""

    def __init__(self, folder: Folder, task: int) -> None:
        self._folder, self._task = folder, task
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._open: _OpenFile | None = None
        self._done: list[DataFile] = []

    def add(self, rows: pa.RecordBatch, kafka: pa.StructArray) -> list[DataFile]:
        """Take rows and where they came from; return the files that this completed."""
        if not rows.num_rows:
            return []
        if self._open is None:
            self._open = _OpenFile(self._folder, self._task, rows.schema)
        self._open.note(rows, kafka)
        self._gathered.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows < GROUP_ROWS and self._bytes < GROUP_BYTES:
            return []
        self._write_group(self._open)
        return [] if self._open.size < FILE_BYTES else self.end()

    def end(self) -> list[DataFile]:
        """Complete the file that is open, if there is one."""
        if self._open is None:
            return []
        self._write_group(self._open)
        done = self._open.closed()
        self._open = None  # not before: a file that cannot be completed is discarded
        self._done.append(done)
        return [done]

    def discard(self) -> None:
        """Remove all files: their task has failed, so that nobody will hear of them."""
        if self._open is not None:
            self._open.remove()
        for each in self._done:
            with suppress(OSError):
                Path(self._folder.path, each.name).unlink()

    def _write_group(self, file: _OpenFile) -> None:
        if self._gathered:
            file.write(pa.Table.from_batches(self._gathered))
        self._gathered, self._rows, self._bytes = [], 0, 0


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
    def __init__(self, folder: Folder, task: int, schema: pa.Schema) -> None:
        self._path = Path(folder.path, f"part-{task:05d}-{uuid.uuid4()}.zstd.parquet")
        self._statistics, self._tight = Statistics(folder.leaves), folder.tight
        self._records: Counter[tuple[str, int]] = Counter()
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

    def note(self, rows: pa.RecordBatch, kafka: pa.StructArray) -> None:
        self._statistics.add(rows)
        self._records.update(counted(kafka))

    def write(self, rows: pa.Table) -> None:
        self._parquet.write_table(rows, row_group_size=GROUP_ROWS)

    def closed(self) -> DataFile:
        self._parquet.close()
        self._sink.close()
        sync(self._path)
        found = self._path.stat()
        said = self._statistics.json(tight=self._tight)
        at_ms = found.st_mtime_ns // 1_000_000
        return DataFile(self._path.name, found.st_size, at_ms, said, self._records)

    def remove(self) -> None:
        for each in (self._parquet, self._sink):
            with suppress(OSError, pa.ArrowException):
                each.close()
        with suppress(OSError):
            self._path.unlink()


def counted(kafka: pa.StructArray) -> Counter[tuple[str, int]]:
    """How many rows came of each topic and partition."""
    if not len(kafka):
        return Counter()
    topic, partition = (kafka[0][name] for name in ("topic", "partition"))
    same = pc.and_(
        pc.equal(kafka.field("partition"), partition), pc.equal(kafka.field("topic"), topic)
    )
    if same.true_count == len(kafka):  # as nearly always
        return Counter({(topic.as_py(), partition.as_py()): len(kafka)})
    places = pa.table({name: kafka.field(name) for name in ("topic", "partition")})
    groups = places.group_by(["topic", "partition"]).aggregate([([], "count_all")])
    columns = (groups.column(name).to_pylist() for name in ("topic", "partition", "count_all"))
    return Counter({(topic, partition): n for topic, partition, n in zip(*columns, strict=True)})


def good(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a decoded batch without a code."""
    codes = rows.column("code")
    return rows if codes.null_count == len(codes) else rows.filter(pc.is_null(codes))


def bad(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a decoded batch with a code."""
    return rows.filter(pc.is_valid(rows.column("code")))


def records_of(files: Iterable[DataFile]) -> Places:
    """How many records are in the files."""
    found: Counter[tuple[str, int]] = Counter()
    for each in files:
        found.update(each.records)
    return found


def counted_ranges(
    applied: Places, quarantined: Places, ranges: Sequence[OffsetRange], where: str
) -> Counts:
    """The counts of the ranges, in their order. Raises BatchFailed where they cannot be right."""
    counts = []
    for each in ranges:
        place = (each.topic, each.partition)
        counts.append(RowCounts(applied.get(place, 0), quarantined.get(place, 0)))
        number = counts[-1].applied + counts[-1].quarantined
        if number > each.span:
            raise other_records(where, f"{number} of {each}")
    beyond = {*applied, *quarantined} - {(each.topic, each.partition) for each in ranges}
    if beyond:
        raise other_records(where, f"records of {sorted(beyond)}")
    return tuple(counts)


def other_records(where: str, found: str) -> BatchFailed:
    """Kafka has changed what it holds while a batch was read. ``where`` is the pipeline."""
    what = "Kafka gave other records than those of the batch"
    return BatchFailed(what, where=where, expected="at most one for each offset", found=found)
