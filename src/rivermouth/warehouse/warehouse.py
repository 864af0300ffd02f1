"""The warehouse of a configuration: a folder of this machine, or a catalog.

Which one it is, the configuration says (``warehouse``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.config import Config
from rivermouth.spark.session import Spark
from rivermouth.warehouse.folder.warehouse import FolderWarehouse
from rivermouth.warehouse.ports import Attempts, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warehouse_of(config: Config, session: SparkSession | Spark) -> Warehouse:
    """Where the tables of ``config`` lie, through ``session``."""
    where = config.warehouse
    if isinstance(where, Path):
        return FolderWarehouse(session, where, Attempts.by(config.retry))
    from rivermouth.warehouse.catalog.warehouse import CatalogWarehouse

    return CatalogWarehouse(Spark.of(session).session(), where, Attempts.by(config.retry))
