"""SQL over the tables of a configuration, as DataFusion answers it."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import Config
from rivermouth.errors import QueryRefused
from rivermouth.operate.sql import query
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.run.text import query_table as render
from rivermouth.warehouse.delta.log import DeltaLog
from tests.builders import place
from tests.folders import folder_of_config
from tests.unit.operate.doubles import configured

pytestmark = pytest.mark.unit

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Two pipelines; only the first has a table."""
    tables = {"orders": "silver.Orders", "later": "silver.later"}
    pipelines = {name: {"target": {"table": table}} for name, table in tables.items()}
    config = configured(tmp_path, **pipelines)
    commit(config, 1, "c1")
    return config


def commit(config: Config, sequence: int, commit_id: str, *, bad: int = 1) -> Path:
    entry = Entry(
        pipeline="orders",
        sequence=sequence,
        commit=commit_id,
        cluster="K",
        table="",
        topics={},
        ranges=(OffsetRange(place(), sequence - 1, sequence),),
        position=Position({place(): sequence}),
        rows=(RowCounts(1 - bad, bad),),
    )
    rows = {
        "id": [sequence],
        "amount": [Decimal("1.50")],
        "at": pa.array([NOON], pa.timestamp("us", tz="UTC")),
        "raw": [b"\xff"],
        "nested": [{"at": NOON, "b": b"\x00", "n": None}],
    }
    path = folder_of_config(config) / "silver" / "Orders"
    properties = CommitProperties(
        app_transactions=[Transaction(app_id("orders"), sequence)],
        custom_metadata={"userMetadata": to_json(entry)},
    )
    write_deltalake(str(path), pa.table(rows), mode="append", commit_properties=properties)
    return path


def quarantine(config: Config, *commits: str) -> None:
    path = folder_of_config(config) / "silver" / "Orders_quarantine"
    write_deltalake(str(path), pa.table({"commit": [*commits]}), mode="append")


def offsets(config: Config, *rows: tuple[str, int, str]) -> None:
    names = ("pipeline", "sequence", "commit")
    table = pa.table([[row[n] for row in rows] for n in range(3)], names=names)
    write_deltalake(str(folder_of_config(config) / "rivermouth" / "offsets"), table)


def commits_shown(config: Config) -> list[str]:
    rows = query(config, 'SELECT "commit" FROM silver.Orders_quarantine ORDER BY 1').rows()
    return [row[0] for row in rows]


def test_a_table_is_known_by_its_dotted_name(config: Config) -> None:
    result = query(config, "SELECT count(*) AS n, 'silver.Orders' AS s FROM silver.Orders o")
    assert result.as_dicts() == [{"n": 1, "s": "silver.Orders"}]


def test_values_are_as_json_has_them(config: Config) -> None:
    [row] = query(config, "SELECT * FROM silver.Orders").as_dicts()
    assert row == {
        "id": 1,
        "amount": "1.50",
        "at": "2026-01-01T12:00:00.000000Z",
        "raw": "/w==",
        "nested": {"at": "2026-01-01T12:00:00.000000Z", "b": "AA==", "n": None},
    }
    json.dumps(row)


def test_a_leading_comment_and_a_parenthesis_are_no_obstacle(config: Config) -> None:
    assert query(config, "-- one\n/* two */ (SELECT 1 AS x)").as_dicts() == [{"x": 1}]


def test_quarantine_shows_only_commits_in_effect(config: Config) -> None:
    commit(config, 2, "c2")
    quarantine(config, "c1", "c2", "left over by a crash")
    assert commits_shown(config) == ["c1", "c2"]
    DeltaTable(str(folder_of_config(config) / "silver" / "Orders")).restore(0)
    assert commits_shown(config) == ["c1"]


def test_only_commits_with_bad_records_are_listed_for_a_quarantine(config: Config) -> None:
    for sequence in range(2, 12):
        commit(config, sequence, f"good{sequence}", bad=0)
    commit(config, 12, "c12")
    quarantine(config, "c1", "c12", "left over by a crash")
    plan, _ = query(config, 'EXPLAIN SELECT * FROM silver."Orders_quarantine"').as_dicts()
    assert {*re.findall(r'"(\w+)"', plan["plan"])} == {"c1", "c12"}
    assert commits_shown(config) == ["c1", "c12"]


def test_the_log_is_read_only_where_a_statement_names_a_quarantine(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantine(config, "c1")
    monkeypatch.setattr(DeltaLog, "commits", lambda self: pytest.fail("it reads the log"))
    assert query(config, "SELECT count(*) FROM silver.Orders").rows() == [(1,)]
    assert ("silver", "Orders_quarantine") in {
        row[1:3] for row in query(config, "SHOW TABLES").rows()
    }
    with pytest.raises(pytest.fail.Exception, match="it reads the log"):
        query(config, 'SELECT count(*) FROM silver."Orders_quarantine"')


def test_quarantine_of_trimmed_entries_is_known_from_the_offsets_table(config: Config) -> None:
    path = commit(config, 2, "c2")
    DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    offsets(config, ("orders", 1, "c1"), ("orders", 2, "c2"), ("other", 1, "theirs"))
    quarantine(config, "c1", "c2", "theirs", "left over by a crash")
    assert commits_shown(config) == ["c1", "c2"]


def test_the_offsets_table_has_its_name(config: Config) -> None:
    offsets(config, ("orders", 1, "c1"))
    statement = "SELECT sequence FROM rivermouth.offsets WHERE pipeline = 'orders'"
    assert query(config, statement).rows() == [(1,)]


def test_show_tables_lists_what_there_is(config: Config) -> None:
    rows = query(config, "SHOW TABLES").as_dicts()
    ours = [row["table_name"] for row in rows if row["table_schema"] == "silver"]
    assert ours == ["Orders"]


def test_a_table_that_is_not_there_names_those_that_are(config: Config) -> None:
    with pytest.raises(
        QueryRefused, match=r"'silver\.later' not found.*exist: silver\.Orders"
    ) as it:
        query(config, "SELECT * FROM silver.later")
    assert it.value.exit_code == 2


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "-- nothing",
        "COPY (SELECT 1) TO 'x.csv'",
        "DROP VIEW silver.Orders",
        "SET datafusion.execution.batch_size = 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x.csv'",
        "INSERT INTO silver.Orders VALUES (1)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'",
        "WITH x AS (SELECT 1) INSERT INTO silver.Orders SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT nope FROM silver.Orders",
        "SELECT FROM WHERE",
    ],
)
def test_what_does_not_read_or_does_not_parse_is_refused(
    config: Config, statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(QueryRefused):
        query(config, statement)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_rendering_is_eighty_columns_wide_and_says_null(config: Config) -> None:
    text = render(query(config, f"SELECT id, NULL AS x, '{'y' * 200}' AS z FROM silver.Orders"))
    assert max(map(len, text.splitlines())) <= 80
    assert "null" in text
    assert text.count("y") == 200


def test_a_query_can_be_explained(config: Config) -> None:
    assert query(config, "EXPLAIN VERBOSE SELECT * FROM silver.Orders").rows()
