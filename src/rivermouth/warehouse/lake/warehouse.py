"""Tables in a folder of this machine, found by their paths.

A table is locked by a file of two bytes: the first is this process's, the second that of its JVM,
once there is one. So the lock outlives a killed Python driver for as long as that driver's JVM
could still commit, and not a moment longer.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rivermouth.config import OFFSETS_TABLE, Pipeline, TableName
from rivermouth.errors import BatchFailed, RivermouthError, TableLocked
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import Lake
from rivermouth.storage.trial import tried
from rivermouth.warehouse.delta.counts import with_counts
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.warehouse.ports import ATTEMPTS, Attempts, LedgerStore, LedgerWrites
from rivermouth.warehouse.spark_commits import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 5.0
"""So long is waited for a predecessor that ends."""
_POLL_S = 0.1


class TableLock:
    """The exclusive right of this process and its JVM to write the tables of a pipeline target.

    Waits up to ``PATIENCE_S`` for a dying predecessor, then raises TableLocked; BatchFailed where
    the file cannot be written. No more than one of a ``file`` may be in a process: the system gives
    up the locks of a process with any descriptor of the file that it closes.
    """

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as fault:
            what, found = "the lock of the table cannot be taken", fault.strerror or str(fault)
            raise BatchFailed(what, where=str(file), found=found) from fault
        self._file, self.holders = file, 1
        self._of_jvm: Any = None
        deadline = time.monotonic() + PATIENCE_S
        while not self._taken():
            if time.monotonic() > deadline:
                os.close(self._descriptor)
                raise TableLocked(
                    "another process writes this table",
                    where=str(file.with_suffix("")),
                    expected="one writing process",
                )
            time.sleep(_POLL_S)

    def _taken(self) -> bool:
        with suppress(BlockingIOError, PermissionError):
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 2)
            return True
        return False

    def share(self, session: SparkSession) -> None:
        """Let the JVM of ``session`` have the second byte, before it writes."""
        if self._of_jvm is not None or not self.holders:
            return
        jvm: Any = session._jvm
        channel = jvm.java.io.RandomAccessFile(str(self._file), "rw").getChannel()
        # Nobody can come between: whoever asks for the lock asks for both bytes at once.
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, 1)
        if channel.tryLock(1, 1, False) is None:
            channel.close()
            raise TableLocked(
                "a JVM writes this table that is not ours",
                where=str(self._file.with_suffix("")),
                expected="one writing process",
            )
        self._of_jvm = channel

    def close(self) -> None:
        """Give it back."""
        if self._of_jvm is not None:
            from rivermouth.spark.errors import FAULTS

            with suppress(*FAULTS):  # with a JVM that is gone its lock has gone
                self._of_jvm.close()
        os.close(self._descriptor)


_LOCKS: dict[Path, TableLock] = {}
"""The locks that this process has."""
_CHANGING = threading.Lock()


@contextmanager
def table_lock(spark: Spark, file: Path) -> Iterator[None]:
    """Hold the lock at ``file``, together with others of this process: pipelines of one run may
    share a table.

    Raises what ``TableLock`` does.
    """
    with _CHANGING:
        if file in _LOCKS:
            _LOCKS[file].holders += 1
        else:
            _LOCKS[file] = TableLock(file)
        lock = _LOCKS[file]

    def share(session: SparkSession) -> None:
        with _CHANGING:
            lock.share(session)

    try:
        spark.once_started(share)
        yield
    finally:
        with _CHANGING:
            lock.holders -= 1
            if not lock.holders:
                del _LOCKS[file]
                lock.close()


def _translate(where: str, fault: Exception) -> RivermouthError:
    from rivermouth.spark.errors import translate  # dear to load, and seldom needed

    return translate(fault, where)


class LakeWarehouse:
    """The tables of a lake. ``session``: of whoever lets Spark write it."""

    def __init__(
        self, session: SparkSession | Spark, lake: Lake, attempts: Attempts = ATTEMPTS
    ) -> None:
        self._spark = Spark.of(session)
        self.lake = lake
        self._offsets = LakeOffsets(lake.store(OFFSETS_TABLE), attempts)

    def address(self, table: TableName) -> Address:
        """See ``Warehouse.address``."""
        path = self.lake.address(table)
        if self.lake.folder is not None:
            return Address(path=path)
        from rivermouth.warehouse.lake.frames import frame  # dear, and few need it

        return Address(path=path, reader=partial(frame, self.lake.store(table)))

    def offsets(self) -> Address:
        """See ``Warehouse.offsets``."""
        return self.address(OFFSETS_TABLE)

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Warehouse.hold``. Raises TableLocked.

        A bucket has no lock: there the commits alone exclude each other, and that is tried.
        """
        if (folder := self.lake.folder) is None:
            tried(self.lake)
            yield
            return
        locks = OFFSETS_TABLE.path(folder).parent / "locks"
        with table_lock(self._spark, locks / f"{table}.lock"):
            yield

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """See ``Warehouse.ledger``."""
        return LedgerStore(self._log(pipeline.target.table), self._offsets)

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """See ``Warehouse.writes``."""
        table = pipeline.target.table
        return LedgerWrites(
            count=partial(with_counts, self._log(table)),
            record=partial(record, self._spark, self.address(table)),
            translate=partial(_translate, pipeline.name),
        )

    def scratch(self) -> None:
        """See ``Warehouse.scratch``: there is one machine."""

    def prepare(self, session: SparkSession, pipeline: Pipeline) -> None:
        """See ``Warehouse.prepare``: the first bad record creates the quarantine."""

    def _log(self, table: TableName) -> DeltaLog:
        return DeltaLog(self.lake.store(table))
