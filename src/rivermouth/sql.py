"""SQL over the tables of a configuration, from any terminal, without a JVM.

DataFusion answers, through delta-rs. Every table is a view under its own name
(``silver.orders``); a quarantine shows only the rows of commits that stand; the offsets
table is ``rivermouth.offsets``. Names are matched exactly, upper and lower case included.
Views cannot be written to, and only statements that read are let through.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from rivermouth.chain import Chain
from rivermouth.config import OFFSETS_TABLE, Config, Pipeline, TableName
from rivermouth.delta import DeltaLog
from rivermouth.errors import QueryRefused
from rivermouth.layout import text_table

_ENGINE = {
    "datafusion.catalog.information_schema": "true",  # SHOW TABLES, SHOW COLUMNS
    "datafusion.execution.time_zone": "+00:00",
    # Spark writes INT96 by default; read as nanoseconds, far years would wrap.
    "datafusion.execution.parquet.coerce_int96": "us",
}
_READS = {"SELECT", "WITH", "VALUES", "DESCRIBE", "DESC", "SHOW", "EXPLAIN", "("}
_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"\(|[A-Za-z]+")


@dataclass(frozen=True)
class QueryResult:
    """The answer to a statement. ``columns`` may hold the same name twice."""

    columns: tuple[str, ...]
    arrow: pa.Table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, each value as JSON has it: decimals and times as text, bytes in base64."""
        values = [_json_values(column) for column in self.arrow.columns]
        return list(zip(*values, strict=True))

    def as_dicts(self) -> list[dict[str, Any]]:
        """The JSON of ``rivermouth sql --json``: one object per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows()]


def query(config: Config, statement: str) -> QueryResult:
    """Answer one SQL statement that reads. Raises QueryRefused, with what DataFusion says."""
    _check_reads(statement)
    engine = QueryBuilder(_ENGINE)
    present = _register(engine, config)
    try:
        answer = pa.RecordBatchReader.from_stream(engine.execute(statement)).read_all()
    except (DeltaError, pa.ArrowException, ValueError) as fault:
        raise QueryRefused(_first_line(fault), remedy=_remedy(fault, present)) from fault
    return QueryResult(tuple(answer.schema.names), answer)


def render(result: QueryResult) -> str:
    """The answer for people, 80 columns wide; null is shown as ``null``."""
    kinds = [pa.types.is_primitive(each.type) for each in result.arrow.schema]
    numbers = [index for index, plain in enumerate(kinds) if plain]
    rows = [[_cell(value) for value in row] for row in result.rows()]
    return text_table(result.columns, rows, numbers=numbers)


def _check_reads(statement: str) -> None:
    """Let through only what begins like a query: COPY, SET and CREATE have no place here."""
    blank = _BLANK.match(statement)
    word = _WORD.match(statement, blank.end() if blank else 0)
    if word is None or word[0].upper() not in _READS:
        raise QueryRefused(
            "only statements that read are answered",
            expected="SELECT, WITH, VALUES, DESCRIBE, SHOW or EXPLAIN",
            found=word[0] if word else "nothing",
        )


def _register(engine: QueryBuilder, config: Config) -> list[str]:
    """Make every table that exists known under its name; return the names."""
    tables: dict[TableName, list[Pipeline]] = {}
    for pipeline in config.pipelines.values():
        tables.setdefault(pipeline.target.table, []).append(pipeline)
    conditions: dict[TableName, str] = {}
    for name, pipelines in tables.items():
        conditions[name] = ""
        if DeltaTable.is_deltatable(str(name.quarantine.path(config.warehouse))):
            log = DeltaLog(name.path(config.warehouse))
            conditions[name.quarantine] = _standing(log, pipelines)
    conditions[OFFSETS_TABLE] = ""
    for schema in sorted({name.schema for name in conditions}):
        engine.execute(f"CREATE SCHEMA {_quoted(schema)}")
    return [
        str(name)
        for number, (name, condition) in enumerate(conditions.items())
        if _create_view(engine, config, name, f"rivermouth_{number}", condition)
    ]


def _create_view(
    engine: QueryBuilder, config: Config, name: TableName, hidden: str, condition: str
) -> bool:
    """A view on the table at its path; the table itself is then taken out of sight."""
    path = str(name.path(config.warehouse))
    if not DeltaTable.is_deltatable(path):
        return False
    try:
        engine.register(hidden, DeltaTable(path))
        view = f"{_quoted(name.schema)}.{_quoted(name.name)}"
        engine.execute(f"CREATE VIEW {view} AS SELECT * FROM {hidden}{condition}")
        engine.execute(f"DROP TABLE {hidden}")
    except DeltaError as fault:
        raise QueryRefused(f"{name} cannot be read", found=_first_line(fault)) from fault
    return True


def _standing(log: DeltaLog, pipelines: Iterable[Pipeline]) -> str:
    """The condition for quarantine rows of commits that stand in the table as it is now."""
    commits: list[str] = []
    records = list(log.commits())
    for pipeline in pipelines:
        chain = Chain(pipeline.name, pipeline.name)
        chain.extend(records)
        commits += sorted(chain.standing_commits())
    listed = ", ".join(f"'{each}'" for each in commits if "'" not in each)
    return f' WHERE "commit" IN ({listed})' if listed else " WHERE false"


def _remedy(fault: Exception, present: Sequence[str]) -> str:
    if "not found" not in str(fault):
        return ""
    return f"Tables that exist: {', '.join(present) or 'none yet'}"


def _first_line(fault: Exception) -> str:
    text = " ".join(str(fault).split())
    return text.removesuffix(".")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Python's datetime ends at the year 9999 and at microseconds; text does not.
        column = column.cast(pa.string())
    return [_json_value(value) for value in column.to_pylist()]


def _json_value(value: Any) -> Any:
    """Numbers, text, booleans, lists and objects as they are; bytes in base64; else text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(name): _json_value(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
