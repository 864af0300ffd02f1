"""The warehouse of a configuration: a folder of this machine, or a catalog.

Which one it is, the configuration says (``warehouse``).
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import Config
from rivermouth.warehouse.catalog.warehouse import CatalogWarehouse
from rivermouth.warehouse.folder.warehouse import FolderWarehouse
from rivermouth.warehouse.ports import Attempts, Warehouse


def warehouse_of(config: Config, session: SparkSession) -> Warehouse:
    """Where the tables of ``config`` lie, through ``session``."""
    where = config.warehouse
    if isinstance(where, Path):
        return FolderWarehouse(session, where, Attempts.by(config.retry))
    return CatalogWarehouse(session, where, Attempts.by(config.retry))
