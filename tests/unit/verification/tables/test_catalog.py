"""The checker's reading of a catalog: what it takes for an entry, for a table, and at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from rivermouth.config import OFFSETS_TABLE, Catalog, TableName
from rivermouth.protocol.entry_json import to_json
from rivermouth.verification.ledger.log import Ledger, read_ledger
from rivermouth.verification.proofs.offsets_table import Allowed, verify_offsets_table
from rivermouth.verification.result import Findings, Kind
from rivermouth.verification.tables.catalog import CatalogRows, CatalogTables
from rivermouth.verification.tables.ports import Unreadable
from tests.builders import PIPELINE, entry_after, span
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit

TABLE = TableName("silver", "orders")
NAMES = Catalog(catalog="main", schema="rivermouth", volume="state")
MISSING = "[TABLE_OR_VIEW_NOT_FOUND] The table or view cannot be found."


class Spark:
    """Answers what the checker asks, by the beginning of the statement; notes all it was asked."""

    def __init__(self, **answers: pa.Table | str) -> None:
        self.asked: list[str] = []
        self._answers = answers

    def __call__(self, statement: str) -> pa.Table:
        self.asked.append(statement)
        kind = statement.split()[1].lower()
        answer = self._answers.get("rows" if statement.startswith("SELECT") else kind, MISSING)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer


def history(*commits: tuple[str, str | None]) -> pa.Table:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    more = {"timestamp": at, "operationParameters": {"predicate": "b"}}
    rows = [
        {
            "version": n,
            "operation": name,
            "operationMetrics": {"numDeletedRows": "3"},
            "userMetadata": text,
            **more,
        }
        for n, (name, text) in enumerate(commits)
    ]
    return pa.Table.from_pylist(rows[::-1])


# What is a commit


ENTRY = to_json(entry_after(None, span(0, 5)))


@pytest.mark.parametrize(
    ("operation", "text", "entries"),
    [
        ("WRITE", ENTRY, 1),
        ("MERGE", ENTRY, 1),
        ("OPTIMIZE", ENTRY, 0),
        ("DELETE", ENTRY, 0),
        ("WRITE", json.dumps({"pipeline": PIPELINE, "sequence": 1}), 0),
        ("WRITE", "a text of others", 0),
        ("WRITE", json.dumps("rivermouth"), 0),
        ("WRITE", "[1]", 0),
        ("WRITE", None, 0),
    ],
)
def test_a_text_is_an_entry_only_with_an_operation_that_writes_rows(
    operation: str, text: str | None, entries: int
) -> None:
    spark = Spark(history=history(("CREATE TABLE", None), (operation, text)))
    findings = Findings(PIPELINE)
    ledger = read_ledger(CatalogTables(NAMES, spark).commits(TABLE), PIPELINE, findings)
    assert ledger is not None
    assert (len(ledger.recorded), findings.proof().problems) == (entries, ())
    assert ledger.deletes == ({1: 3} if operation == "DELETE" else {})


# What is a table


SCHEMA_THERE = pa.table({"info_name": ["Catalog Name"]})


@pytest.mark.parametrize(
    "text",
    [
        MISSING,
        "[DELTA_MISSING_DELTA_TABLE] `main`.`silver`.`orders` is not a Delta table",
        "[DELTA_TABLE_NOT_FOUND] Delta table doesn't exist",
    ],
)
def test_a_table_may_be_missing_where_its_schema_is_there(text: str) -> None:
    tables = CatalogTables(NAMES, Spark(history=text, schema=SCHEMA_THERE))
    assert tables.commits(TABLE).versions() == []
    assert not tables.exist(TABLE)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("[SCHEMA_NOT_FOUND] The schema `main`.`silver` cannot be found.", SCHEMA_THERE),
        ("[NO_SUCH_CATALOG_EXCEPTION] Catalog 'main' was not found.", SCHEMA_THERE),
        ("[PATH_NOT_FOUND] Path does not exist: abfss://…", SCHEMA_THERE),
        (MISSING, "[SCHEMA_NOT_FOUND] The schema `main`.`silver` cannot be found."),
    ],
)
def test_a_wrong_schema_or_catalog_is_an_error_and_no_table_to_come(
    text: str, schema: pa.Table | str
) -> None:
    tables = CatalogTables(NAMES, Spark(history=text, schema=schema))
    for ask in (tables.commits, tables.exist, tables.rows):
        with pytest.raises(Unreadable, match=r"NOT_FOUND|not found"):
            ask(TABLE)


PROJECTED = pa.Table.from_pylist(
    [
        {
            "sequence": n,
            "topic": "t",
            "partition": 0,
            "from_offset": 0,
            "until_offset": 5,
            "end_offset": None,
            "commit": f"c{n}",
            "table_version": n,
            "table_name": str(TABLE),
            "topic_id": "topic-1",
            "cluster_id": "cluster-1",
            "records": 5,
            "applied": 5,
            "quarantined": 0,
            "skipped": 0,
        }
        for n in (1, 2)
    ]
)


class Shared(Spark):
    """The table's history changes while the offsets table is read."""

    def __init__(self, first: pa.Table | str, then: pa.Table | str) -> None:
        super().__init__(rows=PROJECTED, schema=SCHEMA_THERE)
        self._histories = [first, then]

    def __call__(self, statement: str) -> pa.Table:
        if statement.startswith("DESCRIBE HISTORY") and "offsets" not in statement:
            self._answers["history"] = self._histories[0]
            if len(self._histories) > 1:
                self._histories.pop(0)
        elif statement.startswith("DESCRIBE HISTORY"):
            self._answers["history"] = history(("CREATE TABLE", None), ("WRITE", None))
        return super().__call__(statement)


@pytest.mark.parametrize(
    ("first", "then", "faults"),
    [
        ("dropped", "dropped", 2),
        ("made anew", "made anew", 2),
        ("made anew", "dropped", 2),
        ("made anew", "written to", 0),
        ("made anew", "written to once", 1),
    ],
)
def test_what_the_offsets_table_knows_and_the_log_does_not_is_a_fault_unless_it_came_since(
    first: str, then: str, faults: int
) -> None:
    answers: Mapping[str, pa.Table | str] = {
        "dropped": MISSING,
        "made anew": history(("CREATE TABLE", None)),
        "written to once": history(("CREATE TABLE", None), ("WRITE", ENTRY)),
        "written to": history(("CREATE TABLE", None), ("WRITE", ENTRY), ("WRITE", ENTRY)),
    }
    tables = CatalogTables(NAMES, Shared(answers[first], answers[then]))
    findings, pipeline = Findings(PIPELINE), a_pipeline()
    log = tables.commits(TABLE)
    ledger = read_ledger(log, PIPELINE, findings) or Ledger(version=-1)
    verify_offsets_table(tables, ledger, log, pipeline, findings, None, Allowed(0.0))
    assert findings.proof().counts[Kind.FAULT] == faults


# How much at once


def asking(path: Path, asked: list[tuple[str, int]]) -> Callable[[str], pa.Table]:
    """Spark's SQL, as far as it is used here, over a Delta table in a folder."""

    def ask(statement: str) -> pa.Table:
        plain = statement.replace("`main`.`silver`.`orders` VERSION AS OF 1", "rows")
        assert "VERSION" not in plain
        query = QueryBuilder().register("rows", DeltaTable(str(path), version=1))
        plain = plain.replace("`_kafka`.`offset`", "rows._kafka['offset']").replace("`", '"')
        table = pa.table(query.execute(plain).read_all())
        asked.append((statement, table.num_rows))
        return table

    return ask


@pytest.mark.parametrize("at_most", [3, 50, 400, 10**6])
@pytest.mark.parametrize("predicate", [None, "id % 2 = 0"])
def test_a_table_is_read_in_slices_that_are_small_enough_and_hold_every_row_once(
    tmp_path: Path, at_most: int, predicate: str | None
) -> None:
    """Two partitions far apart, one of them dense only at its end; rows of nobody."""
    offsets = [*range(300), *range(10**9, 10**9 + 5000, 50), *range(10**9 + 5000, 10**9 + 5100)]
    rows: list[dict[str, Any]] = [
        {"id": n, "_kafka": {"offset": at}} for n, at in enumerate(offsets)
    ]
    rows += [{"id": 1000, "_kafka": None}, {"id": 1002, "_kafka": {"offset": None}}]
    kind = pa.schema([("id", pa.int64()), ("_kafka", pa.struct([("offset", pa.int64())]))])
    write_deltalake(tmp_path, pa.Table.from_pylist(rows[:1], kind))
    write_deltalake(tmp_path, pa.Table.from_pylist(rows[1:], kind), mode="append")
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, kind), mode="append")
    asked: list[tuple[str, int]] = []
    table = CatalogRows(
        "`main`.`silver`.`orders` VERSION AS OF 1", asking(tmp_path, asked), at_most
    )
    asked.clear()
    found = [row["id"] for batch in table.batches(["id"], predicate) for row in batch.to_pylist()]
    assert sorted(found) == [row["id"] for row in rows if predicate is None or row["id"] % 2 == 0]
    read = [number for statement, number in asked if statement.startswith("SELECT `id`")]
    assert max(read) <= at_most
    assert (len(read) == 1) == (at_most > len(found))
    wanted = f"({predicate})"
    assert predicate is None or all(wanted in each for each, _ in asked), "no other row is counted"
    assert len(asked) == 2 or len(read) > 1, "what is small is asked for at once"


def test_a_quarantine_is_read_in_slices_too(tmp_path: Path) -> None:
    rows = [{"offset": each, "value": b"?"} for each in range(500)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows[:1]))
    write_deltalake(tmp_path, pa.Table.from_pylist(rows[1:]), mode="append")
    asked: list[tuple[str, int]] = []
    name = "`main`.`silver`.`orders` VERSION AS OF 1"
    table = CatalogRows(name, asking(tmp_path, asked), at_most=100)
    found = [row["offset"] for batch in table.batches(["offset"]) for row in batch.to_pylist()]
    assert sorted(found) == [*range(500)]
    read = [number for statement, number in asked[1:] if statement.startswith("SELECT `offset`")]
    assert max(read) <= 100


@pytest.mark.parametrize(("rows", "parts"), [(0, 0), (100, 0), (101, 2), (250, 3)])
def test_totals_have_no_offsets_and_are_read_by_a_hash_of_the_row(rows: int, parts: int) -> None:
    asked: list[str] = []

    def ask(statement: str) -> pa.Table:
        asked.append(statement)
        counting = statement.startswith("SELECT count")
        return pa.table({"n": [rows]} if counting else {"id": [1], "total": [2]})

    table = CatalogRows("`t` VERSION AS OF 1", ask, at_most=100)
    assert len([*table.batches(["id", "total"], "id > 0")]) == max(1, parts)
    read = "SELECT `id`, `total` FROM `t` VERSION AS OF 1 WHERE (id > 0)"
    each = [f" AND (pmod(xxhash64(`id`, `total`), {parts}) = {n})" for n in range(parts)]
    assert asked[1:] == [
        "SELECT count(*) AS n FROM `t` VERSION AS OF 1 WHERE (id > 0)",
        *(f"{read}{part}" for part in each or [""]),
    ]


def test_of_the_offsets_table_all_rows_are_asked_for_of_one_version() -> None:
    spark = Spark(history=history(("CREATE TABLE", None), ("WRITE", None)), rows=PROJECTED)
    tables = CatalogTables(NAMES, spark)
    assert tables.exist(OFFSETS_TABLE)
    assert len([*tables.rows(OFFSETS_TABLE).batches(["sequence"], "pipeline = 'orders'")]) == 1
    assert spark.asked == [
        "DESCRIBE HISTORY `main`.`rivermouth`.`offsets` LIMIT 1",
        "SELECT * FROM `main`.`rivermouth`.`offsets` VERSION AS OF 1 LIMIT 0",
        "SELECT `sequence` FROM `main`.`rivermouth`.`offsets` VERSION AS OF 1"
        " WHERE (pipeline = 'orders')",
    ]
