"""Rows to add, as files that the tasks write: one pass, and one small commit by the driver.

The tasks decode, split and count. So bad records lie in quarantine before the commit, the counts
are in its entry, and no file is read again. Nobody sees a file before a commit names it: exactly
that of the version that follows on the one it was planned on, or none. If somebody else was faster,
the committer reads and judges what came, and plans anew.

A table that asks for more than is understood lands through Spark's writer. That is judged again in
each batch: a table may be altered while a run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config.source import KAFKA_COLUMNS
from rivermouth.debug import reach
from rivermouth.formats.arrow import Rebatched, spare_what_is_loaded
from rivermouth.formats.tasks import in_task_of
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import Definition, way_into
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.files.bad_records import (
    QuarantineTarget,
    folder_of,
    task_number,
    write_quarantined,
)
from rivermouth.write.files.data_files import (
    DataFile,
    Files,
    Folder,
    bad,
    counted_ranges,
    good,
    records_of,
)
from rivermouth.write.landing import STALE, RawBatch, Site, Staged
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.driver_commits import quarantine_of, rows_way, table_of

RETURNED = pa.schema([("bad", pa.bool_()), ("file", pa.string())])
"""A row for each file, see ``DataFile.to_json``."""
RETURNED_DDL = "bad BOOLEAN, file STRING"

Batches = Iterable[pa.RecordBatch]
Decode = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Written:
    """What the tasks of a batch wrote: files of good rows, and of bad ones."""

    good: tuple[DataFile, ...]
    bad: tuple[DataFile, ...]

    def there(self, folder: str) -> bool:
        """Whether the good rows' files are in the folder, whole."""
        return all(each.is_whole(Path(folder)) for each in self.good)


def task(
    folder: Folder, target: QuarantineTarget, decode: Decode | None = None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What ``mapInArrow`` is to call: it writes into ``folder``, and bad records into ``target``.

    The rows are decoded, or ``decode`` does that.
    """

    def written(batches: Batches) -> Iterator[pa.RecordBatch]:
        number = task_number()
        rows, quarantine = Files(folder, number), Files(target.folder, number)
        try:
            for batch in map(decode, batches) if decode else batches:
                yield from _returned(rows.add(*_of_table(good(batch))), bad=False)
                yield from _returned(write_quarantined(quarantine, bad(batch), target), bad=True)
            yield from _returned(rows.end(), bad=False)
            yield from _returned(quarantine.end(), bad=True)
        except BaseException:
            rows.discard()
            quarantine.discard()
            raise
        spare_what_is_loaded()

    return written


def collected(rows: Iterable[Mapping[str, object]]) -> Written:
    """What the rows say that the tasks of a batch returned."""
    found: dict[bool, list[DataFile]] = {True: [], False: []}
    for each in rows:
        found[bool(each["bad"])].append(DataFile.from_json(str(each["file"])))
    return Written(tuple(found[False]), tuple(found[True]))


def _returned(files: Iterable[DataFile], *, bad: bool) -> Iterator[pa.RecordBatch]:
    for each in files:
        yield pa.RecordBatch.from_pylist([{"bad": bad, "file": each.to_json()}], RETURNED)


def _of_table(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.StructArray]:
    """The configured columns and ``_kafka``, as the table has them."""
    kafka = rows.column("_kafka")
    row = rows.column("row")
    arrays = [*row.flatten(), kafka]
    fields = [*row.type, pa.field("_kafka", kafka.type)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), kafka


@dataclass(frozen=True)
class Waiting:
    """Files that are written for these ranges and this table, and not committed yet."""

    ranges: tuple[OffsetRange, ...]
    definition: Definition
    written: Written


class FilesLanding:
    """Lands the rows of every good record: as files, where configuration and tables allow that.

    See ``Landing``. Where the configuration leaves them to Spark, no table is asked.
    """

    def __init__(self, site: Site) -> None:
        self._site, self._way = site, rows_way(site)
        self._through_spark = DataFrameWriter(site)
        self._table = table_of(site)
        self._bad = quarantine_of(site)
        self._in_task = in_task_of(site.pipeline)
        self._arrow_batches = ArrowBatches(site)
        self._waiting: Waiting | None = None
        of_bad = F.col("code").isNotNull()
        self._columns = [
            F.col("row"),
            F.col("_kafka"),
            F.col("code"),
            *(F.when(of_bad, F.col(each)).alias(each) for each in ("reason", "key", "value")),
        ]

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts of files are always known.

        The tasks decode where the format knows how.
        """
        if self._way.reason:
            return self._through_spark.stage(batch, plan, stack)
        if not self._table.may(plan):
            return STALE
        table, bad = self._table.definition(), self._bad.definition()
        if way_into(self._way, table, bad).reason:
            return self._through_spark.stage(batch, plan, stack)
        left = self._left(plan, table)
        into, target = folder_of(self._table.path, table), self._bad.target(plan, bad)
        written = left or self._write(self._rows(batch), into, target)
        return Staged(partial(self._commit, table, written))

    def _commit(self, table: Definition, written: Written, plan: CommitPlan) -> None:
        reach("P16")
        numbers = records_of(written.good), records_of(written.bad)
        counts = counted_ranges(*numbers, plan.draft.ranges, self._site.pipeline.name)
        self._bad.commit(written.bad, plan)
        self._waiting = None if written.bad else Waiting(plan.draft.ranges, table, written)
        self._table.commit(plan, plan.entry(counts), written.good)
        self._waiting = None

    def _rows(self, batch: RawBatch) -> DataFrame:
        """What the tasks are given: Kafka's rows where they decode, else decoded ones."""
        if self._in_task is not None:
            return batch.rows.select(*dict.fromkeys((*KAFKA_COLUMNS, *self._in_task.kafka)))
        return batch.decoded().select(self._columns)

    def _left(self, plan: CommitPlan, table: Definition) -> Written | None:
        """What an attempt at the same ranges wrote before a commit of others was in its way.

        Bad records are written again: they carry the id of the plan.
        """
        left, self._waiting = self._waiting, None
        if left is None or left.ranges != plan.draft.ranges or left.definition != table:
            return None
        return left.written if left.written.there(self._table.path) else None

    def _write(self, rows: DataFrame, into: Folder, target: QuarantineTarget) -> Written:
        def write(rows: DataFrame) -> Written:
            parts, writing = self._site.coalesced(rows), task(into, target, self._in_task)
            returned = parts.mapInArrow(Rebatched(writing), RETURNED_DDL).collect()
            return collected(each.asDict() for each in returned)

        return self._arrow_batches.evaluated(rows, write)
