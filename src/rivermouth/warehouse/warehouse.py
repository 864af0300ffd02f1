"""Where the tables of a configuration lie: in a folder of this machine, or in a catalog.

Both give the same things: how Spark finds a table, the books of a pipeline, and the right to
write. Which one it is, the configuration says (``warehouse``).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from rivermouth.config import Config, Pipeline, TableName
from rivermouth.spark.address import Address
from rivermouth.warehouse.catalog.warehouse import CatalogPlace
from rivermouth.warehouse.folder.warehouse import FolderPlace
from rivermouth.warehouse.ports import Books


class Place(Protocol):
    """Where tables lie."""

    def address(self, table: TableName) -> Address:
        """How Spark finds a table."""

    def offsets(self) -> Address:
        """How Spark finds the offsets table."""

    def hold(self, table: TableName) -> AbstractContextManager[None]:
        """The right to write a table, which is looked at before. Raises a Halt."""

    def books(self, pipeline: Pipeline) -> Books:
        """The edges that hold a pipeline's ledger; its table exists."""

    def scratch(self) -> Path | None:
        """A folder that every machine of the cluster sees; None: the driver's own will do."""


def place_of(config: Config, session: SparkSession) -> Place:
    """Where the tables of ``config`` lie, through ``session``."""
    warehouse = config.warehouse
    if isinstance(warehouse, Path):
        return FolderPlace(session, warehouse)
    return CatalogPlace(session, warehouse)
