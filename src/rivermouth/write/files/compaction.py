"""Compaction of a table beside its batches: small files together, deleted rows left out.

A job reads files of one partition as they were when it began, and writes their live rows anew. What
is deleted meanwhile is carried over by place when the job is committed: between two batches, in
milliseconds. A file that has left the table has no live row. A job of which rows have come back, or
none is left, is given up. Nothing depends on one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema
from pyroaring import BitMap64

from rivermouth.debug import reach
from rivermouth.errors import CommitConflict
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.partitions import Partition
from rivermouth.warehouse.delta.rows import as_table
from rivermouth.warehouse.delta.vectors import Vector, deleted_rows, vector_file
from rivermouth.write.files.data_files import DataFile, Files
from rivermouth.write.files.due import TARGET_BYTES, due

SHARE = 0.3
"""At most so large a part of the time is spent on jobs."""
_ROWS = 1 << 16
_NICE = 10
"""The priority of a job. Its thread reads by itself: those of a pool would have their own."""
_PATIENCE_S = 2.0
"""So long is waited for a job at the end of a run."""

Integers = npt.NDArray[np.int64]
Deleted = Callable[[AddFile], BitMap64]
"""The rows of a file that are deleted."""


class Witness(Protocol):
    """Hears of a job, for what has to know where the rows of a table are."""

    def wrote(self, file: str, rows: pa.RecordBatch) -> None:
        """These rows come next in that new file."""

    def wrote_all(self) -> None:
        """No more will come."""

    def stands(self, dead: Mapping[str, BitMap64], vectors: Mapping[Vector, BitMap64]) -> None:
        """The job is committed. ``dead``: which rows are deleted of each file that came;
        ``vectors`` is what its vectors say.
        """


class Nobody:
    """Of a table without keys nobody has to know."""

    def wrote(self, file: str, rows: pa.RecordBatch) -> None:
        """See ``Witness``."""

    def wrote_all(self) -> None:
        """See ``Witness``."""

    def stands(self, dead: Mapping[str, BitMap64], vectors: Mapping[Vector, BitMap64]) -> None:
        """See ``Witness``."""


@dataclass(frozen=True)
class _Moved:
    """Live rows of a file, and where they are now: consecutive rows of a new one."""

    source: str
    rows: Integers
    into: str
    begins: int


@dataclass
class Rewritten:
    """What a job wrote in so many milliseconds: new files, and which rows went where.

    ``sources`` are the files that it read, with the rows that were deleted by then.
    """

    sources: Mapping[AddFile, BitMap64]
    witness: Witness
    ms: int = 0
    files: list[DataFile] = field(default_factory=list)
    moved: list[_Moved] = field(default_factory=list)

    @property
    def added(self) -> list[AddFile]:
        """Its files as a commit names them."""
        return [each.added for each in self.files]

    def discard(self, store: Store) -> None:
        """Remove its files: no commit will name them."""
        store.delete(each.name for each in self.files)


def rewritten(
    sources: Mapping[AddFile, BitMap64],
    log: DeltaLog,
    files: Files,
    witness: Witness,
    stop: Callable[[], bool],
) -> Rewritten | None:
    """Write the rows of ``sources`` that are not deleted into ``files``; None: it was stopped.

    All are of one partition. Raises what the store does.
    """
    began, definition = time.monotonic(), log.state.definition
    kept = (
        each for each in arrow_schema(definition.schema) if each.name not in definition.partitions
    )
    found, schema = Rewritten(sources, witness), pa.schema(kept)
    try:
        for source, deleted in sources.items():
            if not _rewrite(source, deleted, log.store, files, schema, found, stop):
                files.discard()
                return None
        found.files += files.end()
        witness.wrote_all()
        found.ms = int((time.monotonic() - began) * 1000)
    except BaseException:
        files.discard()
        raise
    return found


def _rewrite(
    source: AddFile,
    deleted: BitMap64,
    store: Store,
    files: Files,
    schema: pa.Schema,
    found: Rewritten,
    stop: Callable[[], bool],
) -> bool:
    first = 0
    with store.opened(source.path) as opened:
        parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        for batch in parquet.iter_batches(batch_size=_ROWS, use_threads=False):
            if stop():
                return False
            live = _live(first, len(batch), deleted)
            rows = as_table(batch, schema).take(pa.array(live - first))
            first += len(batch)
            if rows.num_rows:
                placed, done = files.placed(rows)
                into, begins = placed.files[0], int(placed.row[0])
                found.moved.append(_Moved(source.path, live, into, begins))
                found.witness.wrote(into, rows)
                found.files += done
    return True


def _live(first: int, number: int, deleted: BitMap64) -> Integers:
    rows = np.arange(first, first + number)
    dead = np.fromiter(deleted & BitMap64(range(first, first + number)), np.int64)
    return rows if not len(dead) else np.setdiff1d(rows, dead, assume_unique=True)


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """A table's schema (Delta's JSON) as Arrow has it."""
    return pa.schema(Schema.from_json(json.dumps(schema)).to_arrow())


@dataclass(frozen=True)
class JobCommit:
    """The commit of a job in the table as it is now. ``dead`` and ``vectors``: see ``Witness``."""

    commit: Commit
    dead: Mapping[str, BitMap64]
    vectors: Mapping[Vector, BitMap64]

    def discard(self, store: Store) -> None:
        """Remove what was written for it beside the job's files: it was not made."""
        store.delete({str(each.file) for each in self.vectors})


def commit_of(job: Rewritten, log: DeltaLog, deleted: Deleted | None = None) -> JobCommit | None:
    """The commit of a job; None where rows of its files have come back, or none of it is left, or
    where rows have gone from a table that marks none as deleted: a reader would find them again.

    ``deleted`` tells of files as they are now (default: their vectors are read). Its own vectors
    are in the store then. Raises what that does.
    """
    deleted = deleted or (lambda each: deleted_rows(log.store, each.vector))
    now = log.state.current
    left = [now[each.path] for each in job.sources if each.path in now]
    marks = _died(job, {each.path: deleted(each) for each in left})
    if marks is None:
        return None
    new = [each for each in job.added if len(marks[each.path]) != each.rows]
    if any(marks[each.path] for each in new) and not log.state.definition.marks_deletes:
        return None
    vectors = _vectors({e.path: marks[e.path] for e in new if marks[e.path]}, log.store)
    added = [e.marked(vectors[e.path]) if e.path in vectors else e for e in new]
    if not added:
        return None
    return JobCommit(
        _commit(added, left, job.ms),
        {each.path: marks[each.path] for each in added},
        {vector: marks[path] for path, vector in vectors.items()},
    )


def _died(job: Rewritten, now: Mapping[str, BitMap64]) -> dict[str, BitMap64] | None:
    """The rows of the new files that were deleted since the job began; None: some came back.

    ``now`` are the deleted rows of the sources that are still in the table.
    """
    since: dict[str, Integers] = {}
    for source, deleted in job.sources.items():
        if source.path in now:
            if not deleted.issubset(now[source.path]):
                return None
            since[source.path] = np.fromiter(now[source.path] - deleted, np.int64)
    found: dict[str, BitMap64] = {}
    for each in job.moved:
        here, died = found.setdefault(each.into, BitMap64()), since.get(each.source)
        if died is None:
            here.update(BitMap64(range(each.begins, each.begins + len(each.rows))))
            continue
        first, end = np.searchsorted(died, (each.rows[0], each.rows[-1] + 1))
        # Between these, what has died since was live: it is one of the rows.
        at = each.begins + np.searchsorted(each.rows, died[first:end])
        here.update(at.astype(np.uint64))
    return found


def _vectors(marks: Mapping[str, BitMap64], store: Store) -> dict[str, Vector]:
    """The vectors of these marks, by the names of files."""
    if not marks:
        return {}
    content, vectors = vector_file(uuid4(), marks.values())
    store.create(str(vectors[0].file), content)
    return dict(zip(marks, vectors, strict=True))


def _commit(added: Sequence[AddFile], removed: Sequence[AddFile], ms: int) -> Commit:
    metrics = {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(each.size for each in added),
        "numRemovedBytes": sum(each.size for each in removed),
        "executionTimeMs": ms,
    }
    return Commit("OPTIMIZE", added=added, removed=removed, metrics=metrics, changes=False)


class Work(Protocol):
    """A job that goes on beside."""

    def is_alive(self) -> bool:
        """Whether it goes on."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, or for so many seconds."""


def in_a_thread(act: Callable[[], None]) -> Work:
    """Do something beside what the caller does, which comes first where cores are short."""

    def behind() -> None:
        if sys.platform == "linux":  # elsewhere a thread has no priority of its own
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        act()

    thread = threading.Thread(target=behind, name="compaction")
    thread.start()
    return thread


class Compaction:
    """Jobs for one table, beside its batches, one at a time.

    ``log`` knows the files of the table, and is followed by whoever commits batches. ``files``
    makes the files of a job in one partition, and ``witness`` whoever hears of it. ``deleted``
    tells of files as ``log`` has them. ``beside`` begins a job; ``clock`` is in seconds.
    """

    def __init__(
        self,
        log: DeltaLog,
        files: Callable[[Partition], Files],
        witness: Callable[[Partition], Witness] = lambda partition: Nobody(),
        deleted: Deleted | None = None,
        beside: Callable[[Callable[[], None]], Work] = in_a_thread,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._files, self._witness = log, files, witness
        self._deleted, self._beside, self._clock = deleted, beside, clock
        self._stop = threading.Event()
        self._work: Work | None = None
        self._done: Rewritten | None = None
        self._began = self._not_before = clock()
        self._commit: Callable[[Commit], object] | None = None
        self._at = -1  # the version that whoever calls us has seen

    def after_a_commit(self, commit: Callable[[Commit], object]) -> None:
        """Commit a job that is done, by ``commit``, and begin one that is due. Never raises."""
        self._commit, self._at = commit, self._log.state.version
        if self._work is not None:
            if self._work.is_alive():
                return
            self._work, now = None, self._clock()
            self._not_before = now + (now - self._began) * (1 / SHARE - 1)
        with suppress(Exception):  # whatever is wrong with it, the batch stands
            if self._done is None or self._committed(self._done, commit):
                self._done = None
                self._begin()

    def close(self) -> None:
        """Commit a job that ends soon, so that short runs compact, too; give up any other one."""
        if self._work is not None:
            self._work.join(_PATIENCE_S)
            self._stop.set()
            self._work.join()
        with suppress(Exception):
            now = self._log.state.version
            if self._done is not None and self._commit is not None and now == self._at:
                self._committed(self._done, self._commit)
        with suppress(Exception):
            if self._done is not None:
                self._done.discard(self._log.store)

    def _committed(self, job: Rewritten, commit: Callable[[Commit], object]) -> bool:
        """Whether nothing is left to do with the job: else the next commit brings it."""
        reach("P20")
        found = commit_of(job, self._log, self._deleted)
        # Of files that are removed no commit may come, and where one fails, nobody knows of it.
        self._done = None
        if found is None:
            job.discard(self._log.store)
            return True
        try:
            commit(found.commit)
        except CommitConflict:  # others were faster: what they did is looked at before
            found.discard(self._log.store)
            self._done = job
            return False
        self._at = self._log.state.version
        reach("P21")
        job.witness.stands(found.dead, found.vectors)
        return True

    def _begin(self) -> None:
        self._began = self._clock()
        if self._began >= self._not_before:
            files = [*self._log.state.current.values()]
            self._work = self._beside(partial(self._rewrite, files))

    def _rewrite(self, files: Sequence[AddFile]) -> None:
        with suppress(Exception):
            store = self._log.store
            chosen = due(files, self._log.state.definition.file_bytes or TARGET_BYTES)
            sources = {each: deleted_rows(store, each.vector) for each in chosen}
            if chosen:
                partition = chosen[0].partition
                witness, into = self._witness(partition), self._files(partition)
                self._done = rewritten(sources, self._log, into, witness, self._stop.is_set)
