"""The rows of a table as delta-rs reads them, deletion vectors applied: Spark is not involved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

# Spark may write INT96. As nanoseconds, years before 1678 and after 2262 overflow.
_ENGINE = {"datafusion.execution.parquet.coerce_int96": "us"}


def table_at(path: Path | str, version: int | None = None) -> pa.Table:
    """All rows at a version; None: the newest. The types are those of the table."""
    table = DeltaTable(str(path), version)
    engine = QueryBuilder(_ENGINE).register("t", table)
    found = pa.table(engine.execute("SELECT * FROM t").read_all())
    return found.cast(pa.schema(table.schema().to_arrow()))


def rows_at(path: Path | str, version: int | None = None) -> list[dict[str, Any]]:
    """The same as dicts."""
    rows: list[dict[str, Any]] = table_at(path, version).to_pylist()
    return rows
