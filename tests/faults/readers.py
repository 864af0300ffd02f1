"""The rows of a table at a version, as each of those that users read tables with has them.

DuckDB and polars are no packages of the tests: ``make torture-upserts`` puts them into a folder.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

Reader = Callable[[Path, int, str], pa.Table]
"""Reads a table at a version: the columns of a list, as all dialects of SQL write it."""


def readers(spark: SparkSession, folder: Path | None) -> Mapping[str, Reader]:
    """All of them, by name; those that are in ``folder`` only where it is given.

    Raises ImportError where one is missing.
    """
    found = {"Spark": _of_spark(spark), "delta-rs": _delta_rs}
    if folder is not None:
        sys.path.append(str(folder))
        found |= {"DuckDB": _of_duckdb(folder), "polars": _of_polars()}
    return found


def _of_spark(spark: SparkSession) -> Reader:
    def read(table: Path, version: int, columns: str) -> pa.Table:
        return spark.sql(f"SELECT {columns} FROM delta.`{table}` VERSION AS OF {version}").toArrow()

    return read


def _delta_rs(table: Path, version: int, columns: str) -> pa.Table:
    engine = QueryBuilder().register("t", DeltaTable(str(table), version))
    return pa.table(engine.execute(f"SELECT {columns} FROM t").read_all())


def _of_duckdb(folder: Path) -> Reader:
    duckdb = importlib.import_module("duckdb")
    [extension] = folder.glob("duckdb_extension_delta/extensions/*/delta.duckdb_extension")

    def read(table: Path, version: int, columns: str) -> pa.Table:
        with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as session:
            session.execute(f"LOAD '{extension}'")
            asked = f"SELECT {columns} FROM delta_scan('{table}', version := {version})"
            return pa.table(session.execute(asked).to_arrow_table())

    return read


def _of_polars() -> Reader:
    polars = importlib.import_module("polars")

    def read(table: Path, version: int, columns: str) -> pa.Table:
        frame = polars.scan_delta(str(table), version=version)
        return pa.table(frame.sql(f"SELECT {columns} FROM self").collect().to_arrow())

    return read
