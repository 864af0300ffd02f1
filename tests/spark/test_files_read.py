"""What else a table needs whose rows land as files: checkpoints, other readers, other formats."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from rivermouth.protocol.commits import app_id
from rivermouth.warehouse.spark_commits import session_confs
from tests.reading import table_at
from tests.spark.conftest import ARRIVED, SESSION_SETTINGS, Bench
from tests.spark.files_table import BAD, GOOD, Table, made

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def table(bench: Bench) -> Table:
    return made(bench)


@pytest.mark.thorough
def test_checkpoints_come_as_the_table_says_and_spark_goes_on_from_them(bench: Bench) -> None:
    table = made(bench, **{"delta.checkpointInterval": "2"})
    for number in range(5):
        table.land([(None, b'{"n": %d}' % number, 0, number)])
    logs = table.path / "_delta_log"
    assert [int(each.name[:20]) for each in sorted(logs.glob("*.checkpoint.parquet"))] == [2, 4]
    for version in range(4):
        (logs / f"{version:020d}.json").unlink()  # as clean-up does

    copy = bench.folder / "copy"
    table.path.rename(copy)  # Spark has seen nothing of it yet
    copied = bench.address("copy").sql
    numbers = [row["n"] for row in bench.spark.sql(f"SELECT n FROM {copied} ORDER BY n").collect()]
    assert numbers == [0, 1, 2, 3, 4]
    assert DeltaTable(str(copy)).transaction_version(app_id("p")) == 5
    txn = {"txnAppId": app_id("p"), "txnVersion": "5"}
    stale = bench.spark.sql("SELECT 9L AS n").write.format("delta").mode("append").options(**txn)
    stale.save(str(copy))  # by the txn in a checkpoint of ours Spark knows that it is stale
    assert DeltaTable(str(copy)).version() == 5


@pytest.mark.thorough
def test_spark_restores_optimizes_and_vacuums_such_a_table(bench: Bench) -> None:
    table = made(bench, **{"delta.checkpointInterval": "2", "delta.enableDeletionVectors": "true"})
    for number in range(4):
        table.land([(None, b'{"n": %d}' % number, 0, number)])
    table.sql("DELETE FROM {table} WHERE n = 1")
    table.sql("OPTIMIZE {table}")
    table.sql("RESTORE {table} TO VERSION AS OF 3")
    table.sql("VACUUM {table}")
    table.land([(None, b'{"n": 9}', 0, 9)])
    assert table.numbers() == [0, 1, 2, 9]


def test_rows_that_are_added_are_in_the_change_feed(bench: Bench) -> None:
    table = made(bench, **{"delta.enableChangeDataFeed": "true"})
    table.land()
    assert not table.by_spark()
    reader = bench.spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", 0).load(str(table.path)).collect()
    assert sorted((row["n"], row["_change_type"]) for row in rows) == [
        (number, "insert") for number in range(4)
    ]


def test_a_task_decodes_what_it_writes(bench: Bench) -> None:
    table = made(bench)
    empty, twice = (None, b"", 0, 5), (None, b'{"n": 1, "n": 2}', 0, 6)
    table.land([*GOOD, BAD, empty, twice, (None, None, 0, 7), (None, b'{"n":null}', 0, 8)])

    assert [row["n"] for row in table.sql("SELECT n FROM {table} ORDER BY n")] == [None, 0, 1, 2, 3]
    quarantine = str(bench.folder / "numbers_quarantine")
    held = table_at(quarantine).sort_by("offset").to_pylist()
    codes = [(row["offset"], row["code"], row["value"]) for row in held]
    assert codes == [
        (4, "RM603", b"bad"),
        (5, "RM602", b""),
        (6, "RM603", b'{"n": 1, "n": 2}'),
    ]
    assert "n" in held[2]["reason"], "the strict decoder names the field"
    assert held[1]["reason"] == "an empty value"


@pytest.mark.thorough
@pytest.mark.parametrize(("setting", "value"), SESSION_SETTINGS)
def test_no_setting_of_the_session_changes_what_is_written(
    table: Table, setting: str, value: str
) -> None:
    with session_confs(table.bench.spark, {setting: value}):
        table.land([*GOOD, BAD])
    assert not table.by_spark()
    assert table.numbers() == [0, 1, 2, 3]
    arrived = int(ARRIVED.timestamp()) * 1_000_000
    query = "SELECT unix_micros(_kafka.timestamp) AS us, _kafka.topic FROM {table}"
    within = f"_kafka.timestamp BETWEEN timestamp_micros({arrived}) AND timestamp_micros({arrived})"
    for each in (query, f"{query} WHERE {within}"):  # by statistics, too
        assert [tuple(row) for row in table.sql(each)] == [(arrived, "t")] * 4
    assert DeltaTable(str(table.path)).count() == 4
