"""Tables in a folder of this machine, found by their paths. Needs Spark's JVM for the lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import OFFSETS_TABLE, Pipeline, TableName
from rivermouth.spark.address import Address
from rivermouth.spark.errors import translate
from rivermouth.warehouse.attempts import ATTEMPTS, Attempts
from rivermouth.warehouse.folder.lock import TableLock
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.folder.offsets import FolderOffsets
from rivermouth.warehouse.folder.row_counts import with_counts
from rivermouth.warehouse.ports import LedgerStore, LedgerWrites
from rivermouth.write.entry import record


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
        with TableLock(self._session, locks / f"{table}.lock"):
            self._log(table).check_without_hole()
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

    def _log(self, table: TableName) -> FolderLog:
        return FolderLog(table.path(self._folder))
