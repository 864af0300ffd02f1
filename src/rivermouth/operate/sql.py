"""SQL over the tables of a configuration, from any terminal, without a JVM.

DataFusion answers, through delta-rs. Every table is a view under its own name
(``silver.orders``); a quarantine shows only the rows of commits in effect; the offsets
table is ``rivermouth.offsets``. Names are matched exactly, upper and lower case included.
Views cannot be written to, and only statements that read are let through.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from rivermouth.config import OFFSETS_TABLE, Config, Pipeline, Secrets, TableName, unresolved
from rivermouth.errors import QueryRefused
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.storage.lake import Lake
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog

_ENGINE = {
    "datafusion.catalog.information_schema": "true",  # SHOW TABLES, SHOW COLUMNS
    "datafusion.execution.time_zone": "+00:00",
    # Spark writes INT96 by default; read as nanoseconds, far years would wrap.
    "datafusion.execution.parquet.coerce_int96": "us",
}
_READS = {"SELECT", "WITH", "VALUES", "DESCRIBE", "DESC", "SHOW", "("}
_EXPLAIN = {"EXPLAIN", "ANALYZE", "VERBOSE"}
# A word or mark, with the blanks and comments before it.
_WORDS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*([A-Za-z]+|\S)", re.DOTALL)


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


def query(config: Config, statement: str, secrets: Secrets = unresolved) -> QueryResult:
    """Answer one SQL statement that reads. Raises QueryRefused, with what DataFusion says."""
    _check_reads(statement)
    engine = QueryBuilder(_ENGINE)
    present = _register(engine, config, Lake.of(config, secrets), statement)
    try:
        answer = pa.RecordBatchReader.from_stream(engine.execute(statement)).read_all()
    except (DeltaError, pa.ArrowException, ValueError) as fault:
        raise QueryRefused(_one_line(fault), remedy=_remedy(fault, present)) from fault
    return QueryResult(tuple(answer.schema.names), answer)


def _check_reads(statement: str) -> None:
    """Let through only what begins like a query: COPY, SET and CREATE have no place here."""
    words = _WORDS.finditer(statement)
    first = next((each[1].upper() for each in words if each[1].upper() not in _EXPLAIN), "")
    if first not in _READS:
        raise QueryRefused(
            "only statements that read are answered",
            expected="SELECT, WITH, VALUES, DESCRIBE, SHOW or EXPLAIN",
            found=first or "nothing",
        )


def _register(engine: QueryBuilder, config: Config, lake: Lake, statement: str) -> list[str]:
    """Make every table that exists known under its name; return the names.

    Which rows of a quarantine count is read from the whole log of its table: only where the
    statement names it.
    """
    tables: dict[TableName, list[Pipeline]] = {}
    for pipeline in config.pipelines.values():
        tables.setdefault(pipeline.target.table, []).append(pipeline)
    names = [OFFSETS_TABLE, *tables, *(name.quarantine for name in tables)]
    present = [name for name in names if DeltaLog(lake.store(name)).definition() is not None]
    for schema in sorted({name.schema for name in names}):
        engine.execute(f"CREATE SCHEMA {_quoted(schema)}")
    conditions = dict.fromkeys(present, "")
    for name, pipelines in tables.items():
        if name.quarantine in conditions and name.quarantine.name not in statement:
            conditions[name.quarantine] = " WHERE false"
        elif name.quarantine in conditions:
            log = DeltaLog(lake.store(name))
            effective = _effective(log, pipelines, projected=OFFSETS_TABLE in conditions)
            conditions[name.quarantine] = f" WHERE {effective}"
    for number, (name, condition) in enumerate(conditions.items()):
        _create_view(engine, name, lake.store(name), f"rivermouth_{number}", condition)
    return [str(name) for name in present]


def _create_view(
    engine: QueryBuilder, name: TableName, store: Store, hidden: str, condition: str
) -> None:
    """A view on the table in ``store``; the table itself is then taken out of sight."""
    view = f"{_quoted(name.schema)}.{_quoted(name.name)}"
    try:
        engine.register(hidden, store.delta_rs())
        engine.execute(f"CREATE VIEW {view} AS SELECT * FROM {hidden}{condition}")
        engine.execute(f"DROP TABLE {hidden}")
    except DeltaError as fault:
        raise QueryRefused(f"{name} cannot be read", found=_one_line(fault)) from fault


def _effective(log: DeltaLog, pipelines: Iterable[Pipeline], *, projected: bool) -> str:
    """The condition for quarantine rows of commits that are in effect in the table as it is now.

    Entries that log clean-up has taken are found in the offsets table.
    """
    records = list(log.commits())
    conditions = ["false"]
    for pipeline in pipelines:
        history, recorded = replay(History(pipeline.ledger_name, pipeline.name), records)
        entries = [each.entry for each in recorded]
        sequences = history.effective_sequences(recorded)
        effective = [e.commit for e in entries if e.sequence in sequences and _left_bad_records(e)]
        listed = ", ".join("'" + each.replace("'", "''") + "'" for each in effective)
        conditions += [f'"commit" IN ({listed})'] if listed else []
        if projected and records and records[0].version > 0:
            first = min([each.sequence for each in entries], default=1)
            last = max((each for each in sequences if each < first), default=0)
            last = last if entries else 1 << 62
            older = f"pipeline = '{pipeline.ledger_name}' AND sequence <= {last}"
            earlier = f'SELECT "commit" FROM rivermouth.offsets WHERE {older}'
            conditions.append(f'"commit" IN ({earlier})')
    return " OR ".join(conditions)


def _left_bad_records(entry: Entry) -> bool:
    """Whether rows of a commit may be in quarantine. Without counts all its records were good."""
    return any(each.quarantined for each in entry.rows or ())


def _remedy(fault: Exception, present: Sequence[str]) -> str:
    if "not found" not in str(fault):
        return ""
    return f"Tables that exist: {', '.join(present) or 'none yet'}"


def _one_line(fault: Exception) -> str:
    return " ".join(str(fault).split()).replace("'datafusion.", "'").removesuffix(".")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        # Python's datetime ends at the year 9999 and at microseconds; text does not.
        texts = column.cast(pa.string()).to_pylist()
        return [text and text.replace(" ", "T", 1).replace("+0000", "Z") for text in texts]
    return [json_value(value) for value in column.to_pylist()]


def json_value(value: Any) -> Any:
    """Numbers, text, booleans, lists and objects as they are; bytes in base64; else text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)
