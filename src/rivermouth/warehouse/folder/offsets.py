"""The offsets table of a warehouse in a folder, written with deltalake: milliseconds, no JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from rivermouth.config import OFFSETS_TABLE, Pipeline
from rivermouth.errors import OffsetsUnreadable, Passing, ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.offsets_rows import (
    AGAIN,
    REBUILD,
    SCHEMA,
    app_of,
    expired,
    read_projected,
    rollback_app_of,
    rows_of,
)
from rivermouth.warehouse.ports import ATTEMPTS, Attempts, LedgerStore

Problem = TypeVar("Problem", OffsetsUnreadable, ProjectionFailed)

_TARGET_BYTES = 8 << 20
_PROPERTIES = {"delta.logRetentionDuration": "interval 1 hour"}
"""Every access lists the log, and a run makes up to a commit a second. What the table knows is in
its rows; nobody asks for older versions of it.
"""


class FolderOffsets:
    """The offsets table of a warehouse, at ``path``. Shared by all pipelines.

    ``attempts`` are made while others write to it.
    """

    def __init__(self, path: Path, attempts: Attempts = ATTEMPTS) -> None:
        self.path = path
        self._attempts = attempts
        self._table: DeltaTable | None = None

    def sequence(self, pipeline: str) -> int:
        """The newest sequence projected for the pipeline; 0 where there is none."""
        table = self._refreshed()
        return (table.transaction_version(app_of(pipeline)) or 0) if table else 0

    def newest(self, pipeline: str) -> Recorded | None:
        """See ``ports.OffsetsTable``."""
        table = self._refreshed()
        try:
            return read_projected(table.file_uris(), pipeline) if table else None
        except (DeltaError, OSError, pa.ArrowException) as fault:
            raise self._error(OffsetsUnreadable, "cannot be read", fault, REBUILD) from fault

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        table = self._refreshed()
        return (table.transaction_version(rollback_app_of(pipeline)) or 0) if table else 0

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        if self.rollback_noted(pipeline) >= version:
            return
        noted = CommitProperties(app_transactions=[Transaction(rollback_app_of(pipeline), version)])
        try:
            nothing = SCHEMA.empty_table()
            write_deltalake(self._created(), nothing, mode="append", commit_properties=noted)
        except (DeltaError, OSError) as fault:
            raise self._error(ProjectionFailed, "could not be written", fault, AGAIN) from fault

    def project(self, entries: Sequence[Recorded]) -> None:
        """See ``ports.OffsetsTable``: in one commit."""
        for _ in self._attempts.each() if entries else ():
            table = self._created()
            names = {each.entry.pipeline for each in entries}
            known = {name: table.transaction_version(app_of(name)) or 0 for name in names}
            missing = [each for each in entries if each.entry.sequence > known[each.entry.pipeline]]
            if not missing:
                return
            try:
                self._append(table, missing)
                return
            except CommitFailedError:  # somebody was faster: look again
                continue
        if entries:
            how, found = "could not be written", "a conflict at each attempt"  # the time is up
            raise self._error(ProjectionFailed, how, found, AGAIN, Passing.NO)

    def version(self) -> int:
        """See ``ports.OffsetsTable``."""
        table = self._refreshed()
        return table.version() if table else 0

    def compact(self) -> None:
        """See ``ports.OffsetsTable``. Files of the target size are not written again."""
        DeltaTable(str(self.path)).optimize.compact(target_size=_TARGET_BYTES)

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``."""
        table = DeltaTable(str(self.path))
        batches = _old_rows(table, before_ms, pipelines)
        rows = (each.values() for batch in batches for each in batch.to_pylist())
        for each in expired((*row, 1) for row in rows):
            table.delete(each)

    def rebuild(self, entries: Sequence[Recorded]) -> None:
        """Replace the rows of these consecutive entries; see ``project``.

        Later rows stay, and so does the newest sequence: a driver may be running, and a
        table that knows more than the log is a finding (RM415) that must not be wiped out.
        """
        if not entries:
            return
        first, last = entries[0].entry, entries[-1].entry
        table = self._created()
        sequence = max(last.sequence, table.transaction_version(app_of(first.pipeline)) or 0)
        between = f"sequence >= {first.sequence} AND sequence <= {last.sequence}"
        try:
            write_deltalake(
                table,
                rows_of(entries),
                mode="overwrite",
                predicate=f"pipeline = '{first.pipeline}' AND {between}",
                commit_properties=CommitProperties(
                    app_transactions=[_transaction(entries[-1], sequence)]
                ),
            )
        except (DeltaError, OSError) as fault:
            raise self._error(ProjectionFailed, "could not be rebuilt", fault, REBUILD) from fault

    def _append(self, table: DeltaTable, missing: Sequence[Recorded]) -> None:
        last = {each.entry.pipeline: each for each in missing}.values()
        txns = [_transaction(each, each.entry.sequence) for each in last]
        try:
            write_deltalake(
                table,
                rows_of(missing),
                mode="append",
                commit_properties=CommitProperties(app_transactions=txns),
            )
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as fault:
            raise self._error(ProjectionFailed, "could not be written", fault, AGAIN) from fault

    def _created(self) -> DeltaTable:
        """The table to write to, created empty where there is none: a write that creates has
        no ``txn`` to compare with, so of two at once both would stand.
        """
        found = self._refreshed()
        if found is not None:
            return found
        try:
            with suppress(CommitFailedError):  # somebody was faster
                DeltaTable.create(str(self.path), SCHEMA, mode="ignore", configuration=_PROPERTIES)
            self._table = DeltaTable(str(self.path))
        except (DeltaError, OSError) as fault:
            raise self._error(ProjectionFailed, "could not be created", fault, REBUILD) from fault
        return self._table

    def _refreshed(self) -> DeltaTable | None:
        try:
            there = DeltaTable.is_deltatable(str(self.path))
            if there and self._table is None:
                self._table = DeltaTable(str(self.path))
            elif there and self._table is not None:
                self._table.update_incremental()
            elif self._table is not None:  # a write would bring back a log without beginning
                raise self._error(OffsetsUnreadable, "is gone", "no table there", AGAIN, Passing.NO)
        except (DeltaError, OSError) as fault:
            raise self._error(OffsetsUnreadable, "cannot be read", fault, REBUILD) from fault
        return self._table

    def _error(
        self,
        kind: type[Problem],
        how: str,
        found: object,
        remedy: str,
        passes: Passing | None = None,
    ) -> Problem:
        what = f"the offsets table {how}; the target table is as it should be"
        return kind(what, where=str(self.path), found=str(found), remedy=remedy, passes=passes)


def _old_rows(
    table: DeltaTable, before_ms: int, pipelines: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Pipeline, topic, partition and sequence of old rows without bad records."""
    old = pc.field("committed_at") < pa.scalar(before_ms * 1000, pa.timestamp("us", tz="UTC"))
    columns = ["pipeline", "topic", "partition", "sequence"]
    wanted = old & (pc.field("quarantined") == 0) & pc.field("pipeline").isin([*pipelines])
    batches: Iterator[pa.RecordBatch] = table.to_pyarrow_dataset().to_batches(
        columns=columns, filter=wanted
    )
    return batches


def _transaction(last: Recorded, sequence: int) -> Transaction:
    return Transaction(app_of(last.entry.pipeline), sequence, last.timestamp_ms)


def folder_ledger(folder: Path, pipeline: Pipeline) -> LedgerStore:
    """Where the ledger of a pipeline is read, in the local warehouse ``folder``."""
    log = DeltaLog.of_folder(pipeline.target.table.path(folder))
    return LedgerStore(log, FolderOffsets(OFFSETS_TABLE.path(folder)))
