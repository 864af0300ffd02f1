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
from rivermouth.warehouse.folder.lock import TableLock
from rivermouth.warehouse.folder.log import DeltaLog
from rivermouth.warehouse.folder.offsets import OffsetsTable
from rivermouth.warehouse.folder.row_counts import with_rows
from rivermouth.warehouse.ports import Books
from rivermouth.write.commit import record


class FolderPlace:
    """The local warehouse ``folder``."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._offsets = OffsetsTable(OFFSETS_TABLE.path(folder))

    def address(self, table: TableName) -> Address:
        """See ``Place.address``."""
        return Address(path=str(table.path(self._folder)))

    def offsets(self) -> Address:
        """See ``Place.offsets``."""
        return self.address(OFFSETS_TABLE)

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Place.hold``. Raises TableLocked, and LedgerBroken for a log with a hole."""
        locks = OFFSETS_TABLE.path(self._folder).parent / "locks"
        with TableLock(self._session, locks / f"{table}.lock"):
            DeltaLog(table.path(self._folder)).check_without_hole()
            yield

    def books(self, pipeline: Pipeline) -> Books:
        """See ``Place.books``."""
        table = pipeline.target.table
        log = DeltaLog(table.path(self._folder))
        return Books(
            log=log,
            offsets=self._offsets,
            with_rows=partial(with_rows, log),
            record=partial(record, address=self.address(table)),
            translate=partial(translate, where=pipeline.name),
        )

    def scratch(self) -> None:
        """See ``Place.scratch``: there is one machine."""
