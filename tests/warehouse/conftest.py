"""Every implementation of a port is a parameter: those in a catalog start Spark, and are for
``make test-all``, since each question to a catalog is a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.spark.tables import Address

MEMORY = pytest.param("memory", marks=pytest.mark.unit)
MEMORY_CATALOG = pytest.param("memory, as a catalog", marks=pytest.mark.unit)
FOLDER = pytest.param("folder", marks=pytest.mark.unit)
FOLDER_WITH_SPARK = pytest.param("folder", marks=[pytest.mark.spark, pytest.mark.slow])
CATALOG = pytest.param("catalog", marks=[pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough])


@dataclass(frozen=True)
class Schema:
    """A schema of its own in Spark's catalog, whose tables lie in ``folder``."""

    session: SparkSession
    name: str
    folder: Path

    def address(self, table: str) -> Address:
        return Address(name=("spark_catalog", self.name, table))


_NUMBERS = count()


@pytest.fixture(scope="module")
def schema(
    rivermouth_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Schema]:
    """One for the tests of a module; name tables apart."""
    name, folder = f"ports_{next(_NUMBERS)}", tmp_path_factory.mktemp("schema")
    rivermouth_spark.sql(f"CREATE SCHEMA `{name}` LOCATION '{folder}'")
    yield Schema(rivermouth_spark, name, folder)
    rivermouth_spark.sql(f"DROP SCHEMA `{name}` CASCADE")
