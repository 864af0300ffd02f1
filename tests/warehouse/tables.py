"""A table in the making, and its log: in memory, in a folder, in a catalog."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.spark.tables import Address
from rivermouth.warehouse.catalog.warehouse import CatalogLog
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.ports import LedgerLog
from rivermouth.warehouse.spark_commits import writer_options
from tests.memory import MemoryLog, MemoryTable

_ROWS = pa.table({"id": pa.array([], pa.int64())})


class SomeTable(Protocol):
    """A table to which entries and other commits are made. Nothing is there at first."""

    tells_txn: bool
    """Whether the log tells the ``txn`` of a pipeline."""

    def log(self) -> LedgerLog:
        """A new handle on its log."""

    def create(self) -> None:
        """Create the table: version 0."""

    def wrote(self, entry: Entry) -> None:
        """A driver commits an entry. Nothing happens where its ``txn`` is not new."""

    def others(self) -> None:
        """Somebody else appends."""

    def restore(self, version: int) -> None:
        """Somebody restores the table to a version."""

    def clean_up(self, versions: Iterable[int]) -> None:
        """Log clean-up takes these versions, the first ones."""

    def drop(self) -> None:
        """The table is dropped."""


class InMemory:
    """In memory, as in a folder, or (``tells_txn`` false) as in a catalog."""

    def __init__(self, tells_txn: bool) -> None:
        self.tells_txn = tells_txn
        self._table = MemoryTable(commits=[], tells_txn=tells_txn)

    def log(self) -> LedgerLog:
        return MemoryLog(self._table)

    def create(self) -> None:
        self._table.table_id = str(uuid.uuid4())
        self._table.commits = [CommitRecord(0, 0, "CREATE TABLE", {}, {}, None)]

    def wrote(self, entry: Entry) -> None:
        self._table.commit(entry)

    def others(self) -> None:
        self._table.did("WRITE", mode="Append")

    def restore(self, version: int) -> None:
        self._table.did("RESTORE", version=version)

    def clean_up(self, versions: Iterable[int]) -> None:
        self._table.first_version = max(versions) + 1

    def drop(self) -> None:
        self._table.commits = []


class InFolder:
    """A Delta table at ``path``, written without Spark."""

    tells_txn = True

    def __init__(self, path: Path) -> None:
        self._path = path

    def log(self) -> LedgerLog:
        return DeltaLog.of_folder(self._path)

    def create(self) -> None:
        DeltaTable.create(str(self._path), _ROWS.schema)

    def wrote(self, entry: Entry) -> None:
        properties = CommitProperties(
            custom_metadata={"userMetadata": to_json(entry)},
            app_transactions=[Transaction(app_id(entry.pipeline), entry.sequence)],
        )
        stands = DeltaTable(str(self._path)).transaction_version(app_id(entry.pipeline)) or 0
        if entry.sequence > stands:
            write_deltalake(str(self._path), _ROWS, mode="append", commit_properties=properties)

    def others(self) -> None:
        write_deltalake(str(self._path), _ROWS, mode="append")

    def restore(self, version: int) -> None:
        DeltaTable(str(self._path)).restore(version)

    def clean_up(self, versions: Iterable[int]) -> None:
        clean_up(self._path, versions)

    def drop(self) -> None:
        shutil.rmtree(self._path)


class InCatalog:
    """A table that Spark finds by its name; its files lie in ``path``."""

    tells_txn = False

    def __init__(self, session: SparkSession, address: Address, path: Path) -> None:
        self._session = session
        self._address = address
        self._path = path

    def log(self) -> LedgerLog:
        return CatalogLog(self._session, self._address)

    def create(self) -> None:
        self._session.sql(f"CREATE TABLE {self._address.sql} (id BIGINT) USING delta")

    def wrote(self, entry: Entry) -> None:
        nothing = self._address.read(self._session).limit(0)
        self._address.write(nothing.write.mode("append").options(**writer_options(entry)))

    def others(self) -> None:
        self._session.sql(f"INSERT INTO {self._address.sql} VALUES (1)")

    def restore(self, version: int) -> None:
        statement = f"RESTORE TABLE {self._address.sql} TO VERSION AS OF {version}"
        self._session.sql(statement).collect()

    def clean_up(self, versions: Iterable[int]) -> None:
        clean_up(self._path, versions)

    def drop(self) -> None:
        self._session.sql(f"DROP TABLE {self._address.sql}")


def clean_up(path: Path, versions: Iterable[int]) -> None:
    """What log clean-up does once a checkpoint stands for the versions."""
    DeltaTable(str(path)).create_checkpoint()
    for each in versions:
        (path / "_delta_log" / f"{each:020d}.json").unlink()
