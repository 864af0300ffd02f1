"""The offsets table of a lake: rows by commits of our own, upkeep by deltalake. No JVM."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from rivermouth.config import OFFSETS_TABLE, Pipeline
from rivermouth.errors import (
    LedgerBroken,
    LogUnreadable,
    OffsetsUnreadable,
    Passing,
    ProjectionFailed,
    RivermouthError,
)
from rivermouth.protocol.commits import Recorded
from rivermouth.storage.lake import Lake
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.creation import creation
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.statistics import Statistics, leaves_of
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

_TARGET_BYTES, _CHECKPOINTS = 8 << 20, 50
_PROPERTIES = {"delta.logRetentionDuration": "interval 1 hour"}
"""Every access lists the log, and a run makes up to a commit a second. What the table knows is in
its rows; nobody asks for older versions of it.
"""


class LakeOffsets:
    """The offsets table in ``store``. Shared by all pipelines.

    ``attempts`` are made while others write to it. Who only looks may take what was seen at most
    ``fresh_s`` ago.
    """

    def __init__(
        self, store: Store, attempts: Attempts = ATTEMPTS, *, fresh_s: float = 0.0
    ) -> None:
        self._store, self._attempts = store, attempts
        self._fresh_s, self._seen_s = fresh_s, -1e9
        self._log = DeltaLog(store, projected=True)
        self._using = threading.Lock()  # a run writes it in one thread, and openings look at it

    def sequence(self, pipeline: str) -> int:
        """The newest sequence projected for the pipeline; 0 where there is none."""
        with self._using:
            self._followed()
            return self._txn(app_of(pipeline))

    def newest(self, pipeline: str) -> Recorded | None:
        """See ``ports.OffsetsTable``."""
        with self._using:
            if self._followed() < 0:
                return None
        try:
            log = DeltaLog(self._store, files=True, projected=True)
            log.follow()
            return read_projected(self._store, log.state.current, pipeline)
        except (RivermouthError, OSError, pa.ArrowException) as fault:
            raise self._error(OffsetsUnreadable, "cannot be read", fault, REBUILD) from fault

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        with self._using:
            self._followed()
            return self._txn(rollback_app_of(pipeline))

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        app = rollback_app_of(pipeline)

        def noted() -> Commit | None:
            return None if self._txn(app) >= version else _commit((), {app: version})

        self._made(noted)

    def project(self, entries: Sequence[Recorded]) -> None:
        """See ``ports.OffsetsTable``: in one commit."""
        if entries:
            self._made(lambda: self._appending(entries))

    def version(self) -> int:
        """See ``ports.OffsetsTable``: of those that were seen."""
        with self._using:
            seen = self._log.state.version
            return max(seen if seen >= 0 else self._followed(), 0)

    def compact(self) -> None:
        """See ``ports.OffsetsTable``. Files of the target size are not written again."""
        self._store.delta_rs().optimize.compact(target_size=_TARGET_BYTES)

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``."""
        table = self._store.delta_rs()
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
        with self._using:
            self._created()
        table = self._store.delta_rs()
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

    def _made(self, following: Callable[[], Commit | None]) -> None:
        """Make the commit that follows on the newest version, until it stands; None: it does."""
        with self._using:
            for _ in self._attempts.each():
                self._created()
                try:
                    commit = following()
                    if commit is None or self._log.commit(commit):
                        self._keep_up()
                        return
                    self._store.delete(each.path for each in commit.added)
                except OSError as fault:  # nobody knows what became of it: look again
                    how = "could not be written"
                    raise self._error(ProjectionFailed, how, fault, AGAIN) from fault
        how, found = "could not be written", "a conflict at each attempt"  # the time is up
        raise self._error(ProjectionFailed, how, found, AGAIN, Passing.NO)

    def _appending(self, entries: Sequence[Recorded]) -> Commit | None:
        """The commit of the rows that are not there yet."""
        known = {name: self._txn(app_of(name)) for name in {e.entry.pipeline for e in entries}}
        missing = [each for each in entries if each.entry.sequence > known[each.entry.pipeline]]
        if not missing:
            return None
        rows = rows_of(missing)
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd")
        name, data = f"part-00000-{uuid.uuid4()}.zstd.parquet", content.getvalue()
        said = Statistics(leaves_of(self._log.state.definition))
        for each in rows.to_batches():
            said.add(each)
        self._store.put(name, data.to_pybytes())
        file = AddFile(name, data.size, int(time.time() * 1000), said.json(tight=False), {})
        last = {each.entry.pipeline: each for each in missing}.values()
        return _commit([file], {app_of(e.entry.pipeline): e.entry.sequence for e in last})

    def _created(self) -> None:
        """See that there is a table, empty at first: a write that creates has no ``txn`` to
        compare with, so of two at once both would stand.
        """
        if self._followed() >= 0:
            return
        schema = json.loads(Schema.from_arrow(SCHEMA).to_json())
        try:
            if not self._log.commit(creation(schema, _PROPERTIES)):
                self._followed()  # somebody was faster
        except OSError as fault:
            raise self._error(ProjectionFailed, "could not be created", fault, REBUILD) from fault

    def _txn(self, app: str) -> int:
        """As of the version that was seen last."""
        return self._log.state.txns.get(app, 0)

    def _followed(self) -> int:
        """The newest version; -1: there is no table."""
        known, now = self._log.state.version, time.monotonic()
        if now - self._seen_s < self._fresh_s:
            return known
        try:
            self._log.follow()
            self._seen_s = now
        except (LogUnreadable, LedgerBroken) as fault:
            raise self._error(OffsetsUnreadable, "cannot be read", fault, REBUILD) from fault
        if known >= 0 > self._log.state.version:
            raise self._error(OffsetsUnreadable, "is gone", "no table there", AGAIN, Passing.NO)
        return self._log.state.version

    def _keep_up(self) -> None:
        """Write a checkpoint, and clean the log up, where that is due. Nothing depends on it."""
        version = self._log.state.version
        if version % _CHECKPOINTS == 0:
            with suppress(DeltaError, OSError):
                table = self._store.delta_rs(version)
                table.create_checkpoint()
                table.cleanup_metadata()

    def _error(
        self,
        kind: type[Problem],
        how: str,
        found: object,
        remedy: str,
        passes: Passing | None = None,
    ) -> Problem:
        what = f"the offsets table {how}; the target table is as it should be"
        return kind(what, where=self._store.where, found=str(found), remedy=remedy, passes=passes)


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


def _commit(files: Sequence[AddFile], txns: Mapping[str, int]) -> Commit:
    return Commit("WRITE", added=files, txns=txns, parameters={"mode": "Append"}, blind=True)


def ledger_of(lake: Lake, pipeline: Pipeline) -> LedgerStore:
    """Where the ledger of a pipeline is read."""
    log = DeltaLog(lake.store(pipeline.target.table))
    return LedgerStore(log, LakeOffsets(lake.store(OFFSETS_TABLE)))
