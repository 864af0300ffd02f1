"""The warehouse of a configuration: a lake of files, or a catalog.

Which one it is, the configuration says (``warehouse``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Secrets, unresolved
from rivermouth.spark.session import Spark
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.lake.warehouse import LakeWarehouse
from rivermouth.warehouse.ports import Attempts, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warehouse_of(
    config: Config, session: SparkSession | Spark, secrets: Secrets = unresolved
) -> Warehouse:
    """Where the tables of ``config`` lie, through ``session``. ``secrets``: see ``Lake.of``."""
    where = config.warehouse
    if not isinstance(where, Catalog):
        return LakeWarehouse(session, Lake.of(config, secrets), Attempts.by(config.retry))
    from rivermouth.warehouse.catalog.warehouse import CatalogWarehouse

    return CatalogWarehouse(Spark.of(session).session(), where, Attempts.by(config.retry))
