"""Tables under names in a catalog. Whose driver may write is decided by Delta's ``txn`` alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import OFFSETS_TABLE, Catalog, Pipeline, TableName
from rivermouth.local.scratch import volume_folder
from rivermouth.spark.address import Address
from rivermouth.spark.errors import translate
from rivermouth.warehouse.attempts import ATTEMPTS, Attempts
from rivermouth.warehouse.catalog.log import CatalogLog
from rivermouth.warehouse.catalog.offsets import CatalogOffsets
from rivermouth.warehouse.catalog.row_counts import with_counts
from rivermouth.warehouse.ports import LedgerStore, LedgerWrites
from rivermouth.warehouse.quarantine import create_quarantine
from rivermouth.write.entry import record


class CatalogWarehouse:
    """The tables of a configuration in the catalog that ``names`` says."""

    def __init__(
        self, session: SparkSession, names: Catalog, attempts: Attempts = ATTEMPTS
    ) -> None:
        self._session = session
        self._names = names
        self._offsets = CatalogOffsets(session, self.offsets(), attempts)

    def address(self, table: TableName) -> Address:
        """See ``Warehouse.address``."""
        return Address(name=(self._names.catalog, table.schema, table.name))

    def offsets(self) -> Address:
        """See ``Warehouse.offsets``."""
        return Address(name=(self._names.catalog, self._names.schema, OFFSETS_TABLE.name))

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Warehouse.hold``: nobody is kept out; a second driver's commit fails."""
        del table
        yield

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """See ``Warehouse.ledger``."""
        log = CatalogLog(self._session, self.address(pipeline.target.table))
        return LedgerStore(log, self._offsets)

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """See ``Warehouse.writes``."""
        address = self.address(pipeline.target.table)
        return LedgerWrites(
            count=partial(with_counts, self._session, address),
            record=partial(record, address=address),
            translate=partial(translate, where=pipeline.name),
        )

    def scratch(self) -> Path:
        """See ``Warehouse.scratch``: the volume."""
        return volume_folder(self._names)

    def prepare(self, session: SparkSession, pipeline: Pipeline) -> None:
        """See ``Warehouse.prepare``: in a catalog a write that creates a table counts nothing."""
        create_quarantine(session, self.address(pipeline.target.table.quarantine))
