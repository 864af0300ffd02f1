"""Rows as files that the tasks write: one pass, and one small commit by the driver.

The tasks decode, split and count. So bad records lie in quarantine before the commit, the counts
are in its entry, and no file is read again. Nobody sees a file before a commit names it: exactly
that of the version that follows on the one it was planned on, or none. If somebody else was faster,
the committer reads and judges what came, and plans anew.

Of rows by key the driver finds the ones that stand by an index, and the commit deletes them by
vectors; see ``write.keys``.

A table that asks for more than is understood lands through Spark's writer. That is judged again in
each batch: a table may be altered while a run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.config.source import KAFKA_COLUMNS
from rivermouth.debug import reach
from rivermouth.errors import CommitConflict
from rivermouth.errors.store import StoreRefused
from rivermouth.formats.arrow import Rebatched
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.formats.tasks import decoder_of
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import Definition, replaced, way_into
from rivermouth.storage.store import STORE_FAULTS
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.files.bad_records import QuarantineTarget, folder_of, written_again
from rivermouth.write.files.compaction import Compaction
from rivermouth.write.files.data_files import Files, Folder
from rivermouth.write.files.table import appended
from rivermouth.write.files.writing import Writing, Written, carried_out
from rivermouth.write.keys.effect import (
    ByFiles,
    Change,
    LeftToSpark,
    MovedKeys,
    Overflows,
    change_of,
)
from rivermouth.write.keys.index import KeyIndex
from rivermouth.write.keys.runs import Shelf
from rivermouth.write.landing import STALE, Landing, RawBatch, Site, Staged
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.driver_commits import quarantine_of, rows_way, table_of
from rivermouth.write.landings.merge import Merge
from rivermouth.write.landings.own_code import own_code_of
from rivermouth.write.rows import Keyed

_RECORDS, _BYTES, _PARTITIONS = 5_000, 1 << 20, 16
"""A task is worth its start, and its file, from one of these on."""


@dataclass(frozen=True)
class Waiting:
    """Files that are written for these ranges and this table, and not committed yet."""

    ranges: tuple[OffsetRange, ...]
    definition: Definition
    written: Written


def spark_landing(site: Site) -> Callable[[str], Landing]:
    """What takes a batch that does not land as files, for a reason. Raises StoreRefused."""
    if site.in_bucket:

        def refused(reason: str) -> Landing:
            raise StoreRefused.of_spark(site.pipeline.name, reason)

        return refused
    landing: Landing = Merge(site) if isinstance(site.rows, Keyed) else DataFrameWriter(site)
    return lambda reason: landing


class FilesLanding:
    """Lands the rows of every good record: as files, where configuration and tables allow that.

    See ``Landing``. Where the configuration leaves them to Spark, no table is asked.
    """

    def __init__(self, site: Site) -> None:
        rows = site.rows
        self._site, self._way = site, rows_way(site)
        self._by_files: ByFiles | None = rows.by_files if isinstance(rows, Keyed) else None
        self._through_spark = spark_landing(site)
        self._table = table_of(site, batches=True)
        site.at_end(self._table.settle)
        self._bad = quarantine_of(site)
        self._decode = decoder_of(site.pipeline)
        self._arrow_batches = ArrowBatches(site)
        self._own = own_code_of(site, rows, self._decode)
        self._waiting: Waiting | None = None
        self._record_bytes = 0.0  # of the last batch, in files
        self._index: KeyIndex | None = None
        self._compaction: Compaction | None = None

    @property
    def _keyed(self) -> bool:
        return isinstance(self._site.rows, Keyed)

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The tasks decode, so the counts of files are always known."""
        if self._way.reason:
            return self._through_spark(self._way.reason).stage(batch, plan, stack)
        allowed, bad = self._table.looked_at(plan, self._bad.definition)
        if not allowed:
            return STALE
        table = self._table.definition()
        way = way_into(self._way, table, bad, replaced(self._site.pipeline))
        if way.reason:
            return self._through_spark(way.reason).stage(batch, plan, stack)
        into, target = folder_of(self._table.store, table), self._bad.target(plan, bad)
        left = self._left(plan, table, target)
        written = left or self._write(batch, plan, into, target, stack)
        try:
            written, change = self._fitting(written, batch, plan, into, target, stack)
        except LeftToSpark as why:
            self._discard(each.name for each in written.good)
            return self._through_spark(str(why)).stage(batch, plan, stack)
        self._check_seen(written, target)
        return Staged(partial(self._commit, table, into, written, change))

    def _check_seen(self, written: Written, target: QuarantineTarget) -> None:
        """See that the driver finds what tasks wrote in a folder elsewhere. Raises StoreRefused."""
        store, site = self._table.store, self._site
        if not (site.one_host or site.in_bucket or written.there(store, target.folder.store)):
            raise StoreRefused.not_shared(store.where, "a file that a task wrote is not there")

    def _fitting(
        self,
        written: Written,
        batch: RawBatch,
        plan: CommitPlan,
        into: Folder,
        target: QuarantineTarget,
        stack: ExitStack,
    ) -> tuple[Written, Change]:
        """What was written, and what it changes. Raises LeftToSpark.

        Where totals do not fit and Spark cannot land the batch, the records of these keys are
        marked as bad by Spark, and all are written once more.
        """
        try:
            return written, self._change(written, into)
        except Overflows:
            if not self._site.in_bucket or self._by_files is None:
                raise
        self._discard(each.name for each in written.good)
        marked = self._site.counted(batch.decoded(), plan, stack).rows
        writing = Rebatched(Writing(into, target, None, self._by_files.reduction))
        written = carried_out(self._site.coalesced(marked), writing)
        return written, self._change(written, into)

    def _commit(
        self, table: Definition, into: Folder, written: Written, change: Change, plan: CommitPlan
    ) -> None:
        reach("P16")
        counts = written.counted.of(plan.draft.ranges, self._site.pipeline.name)
        self._bad.commit(written.bad, plan)
        try:
            self._table.commit(plan, plan.entry(counts), change.commit)
        except CommitConflict:  # it was not made: of any other fault nobody knows that
            self._discard(change.made)
            self._waiting = Waiting(plan.draft.ranges, table, written)
            raise
        if self._index is not None:
            reach("P22")
            change.stands(self._index)
        self._compaction = self._compaction or self._compacting(into)
        self._compaction.after_a_commit(self._table.also)

    def _change(self, written: Written, into: Folder) -> Change:
        """What the tasks' files change in the table that the plan was made on.

        Raises LeftToSpark.
        """
        if not self._keyed:
            return Change(appended(written.good), {}, {})
        by_files = self._by_files
        assert by_files is not None, "the mode says that its rows land as files"
        if any(each.elsewhere for each in self._table.log.state.current.values()):
            raise LeftToSpark("files of the table lie elsewhere")
        index = self._index or self._begun(by_files, into)
        index.follow()
        reach("P19")
        return change_of(by_files.effect(written, index, partial(Files, into, 0)), index)

    def _begun(self, by_files: ByFiles, into: Folder) -> KeyIndex:
        """The index of the table."""
        columns = by_files.columns(schema_of(self._site.pipeline.table_columns))
        kept = self._site.kept
        shelf = None if kept is None else Shelf(kept, columns.width, columns.values.width)
        self._index = KeyIndex(self._table.log, columns, shelf)
        self._site.at_end(self._index.close)  # the last one to end: compaction comes after it
        return self._index

    def _compacting(self, into: Folder) -> Compaction:
        """The compaction of the table."""
        log, files, index = self._table.log, partial(Files, into, 0), self._index
        if index is None:
            found = Compaction(log, files)
        else:
            found = Compaction(log, files, partial(MovedKeys, index), index.deleted_of)
        self._site.at_end(found.close)
        return found

    def _left(
        self, plan: CommitPlan, table: Definition, target: QuarantineTarget
    ) -> Written | None:
        """What an attempt at the same ranges wrote before a commit of others was in its way.

        Its bad records are in files of their own for each attempt: they carry the id of the plan.
        """
        left, self._waiting = self._waiting, None
        if left is None:
            return None
        written = left.written
        apart = bool(written.bad and target.folder.partitions)  # by others
        whole = not apart and written.there(self._table.store, target.folder.store)
        if not whole or left.ranges != plan.draft.ranges or left.definition != table:
            self._discard(each.name for each in written.good)
            return None
        return replace(written, bad=written_again(written.bad, target))

    def _discard(self, objects: Iterable[str]) -> None:
        """Remove what no commit will name: ``maintain`` would, too, a week later."""
        with suppress(*STORE_FAULTS):
            self._table.log.store.delete(objects)

    def _write(
        self,
        batch: RawBatch,
        plan: CommitPlan,
        into: Folder,
        target: QuarantineTarget,
        stack: ExitStack,
    ) -> Written:
        reduction = None if self._by_files is None else self._by_files.reduction
        decode = self._decode if self._own is None else None
        writing = Rebatched(Writing(into, target, decode, reduction))

        def write(rows: DataFrame) -> Written:
            return carried_out(rows, writing)

        def written(rows: DataFrame) -> Written:
            if self._own is None:
                return write(
                    self._site.coalesced(rows, worth(plan.draft.ranges, self._record_bytes))
                )
            return self._own.written(rows, plan, target, write, stack)

        given = batch.rows.select(*dict.fromkeys((*KAFKA_COLUMNS, *self._decode.reads)))
        found = self._arrow_batches.evaluated(given, written)
        records = sum(each.span for each in plan.draft.ranges)
        self._record_bytes = sum(each.size for each in found.good) / max(1, records)
        return found


def worth(ranges: Sequence[OffsetRange], record_bytes: float) -> int:
    """How many tasks a batch is worth, which write a file each: by its records, by their bytes in
    files, and by the partitions, from each of which a task has to fetch.
    """
    spans = [each.span for each in ranges if each.span]
    size = sum(spans) * record_bytes
    return max(1, sum(spans) // _RECORDS, int(size) // _BYTES, len(spans) // _PARTITIONS)
