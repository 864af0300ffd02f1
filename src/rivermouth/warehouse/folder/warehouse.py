"""Tables in a folder of this machine, found by their paths. Needs Spark's JVM for the lock.

The lock is held by the JVM, the process that writes, so it outlives a killed Python driver
for as long as that driver's JVM could still commit, and not a moment longer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.config import OFFSETS_TABLE, Pipeline, TableName
from rivermouth.errors import TableLocked
from rivermouth.spark.errors import translate
from rivermouth.spark.tables import Address
from rivermouth.warehouse.delta.counts import with_counts
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.folder.offsets import FolderOffsets
from rivermouth.warehouse.ports import ATTEMPTS, Attempts, LedgerStore, LedgerWrites
from rivermouth.warehouse.spark_commits import record

PATIENCE_S = 5.0
"""So long is waited for a predecessor that ends."""
_POLL_S = 0.1


_LOCKS: dict[Path, tuple[Any, int]] = {}
"""The locks that this JVM has, each with the number of its holders."""
_CHANGING = threading.Lock()


@contextmanager
def table_lock(session: SparkSession, file: Path) -> Iterator[None]:
    """The exclusive right of this JVM to write the tables of one pipeline target.

    Waits up to ``PATIENCE_S`` for a dying predecessor, then raises TableLocked. Pipelines
    of one run may share a table: within a JVM, Delta's commits exclude each other.
    """
    with _CHANGING:
        lock, holders = _LOCKS.get(file) or (_acquired(session, file), 0)
        _LOCKS[file] = (lock, holders + 1)
    try:
        yield
    finally:
        with _CHANGING:
            lock, holders = _LOCKS.pop(file)
            if holders > 1:
                _LOCKS[file] = (lock, holders - 1)
            else:
                lock.close()


def _acquired(session: SparkSession, file: Path) -> Any:
    file.parent.mkdir(parents=True, exist_ok=True)
    jvm: Any = session._jvm
    channel = jvm.java.io.RandomAccessFile(str(file), "rw").getChannel()
    deadline = time.monotonic() + PATIENCE_S
    while channel.tryLock() is None:
        if time.monotonic() > deadline:
            channel.close()
            raise TableLocked(
                "another process writes this table",
                where=str(file.with_suffix("")),
                expected="one writing process",
            )
        time.sleep(_POLL_S)
    return channel


class FolderWarehouse:
    """The local warehouse ``folder``."""

    def __init__(self, session: SparkSession, folder: Path, attempts: Attempts = ATTEMPTS) -> None:
        self._session = session
        self._folder = folder
        self._offsets = FolderOffsets(OFFSETS_TABLE.path(folder), attempts)

    def address(self, table: TableName) -> Address:
        """See ``Warehouse.address``."""
        return Address(path=str(table.path(self._folder)))

    def offsets(self) -> Address:
        """See ``Warehouse.offsets``."""
        return self.address(OFFSETS_TABLE)

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Warehouse.hold``. Raises TableLocked, and LedgerBroken for a log with a hole."""
        locks = OFFSETS_TABLE.path(self._folder).parent / "locks"
        with table_lock(self._session, locks / f"{table}.lock"):
            self._log(table).versions()  # a hole in the log is told before Spark fails at it
            yield

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """See ``Warehouse.ledger``."""
        return LedgerStore(self._log(pipeline.target.table), self._offsets)

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """See ``Warehouse.writes``."""
        table = pipeline.target.table
        return LedgerWrites(
            count=partial(with_counts, self._log(table)),
            record=partial(record, address=self.address(table)),
            translate=partial(translate, where=pipeline.name),
        )

    def scratch(self) -> None:
        """See ``Warehouse.scratch``: there is one machine."""

    def prepare(self, session: SparkSession, pipeline: Pipeline) -> None:
        """See ``Warehouse.prepare``: the first bad record creates the quarantine."""

    def _log(self, table: TableName) -> DeltaLog:
        return DeltaLog.of_folder(table.path(self._folder))
