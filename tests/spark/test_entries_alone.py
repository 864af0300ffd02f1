"""Commits of keyed tables that bring no rows: small ones by the driver, where that is safe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Observation

from rivermouth.protocol.entry import RowCounts
from rivermouth.write.landings import driver_commits
from tests.spark.batch_table import BatchTable, keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline
from tests.spark.files_table import at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOOD: list[RawRow] = [(b"%d" % n, b'{"order_id": %d, "rank": 1}' % n, 0, n) for n in range(4)]
BAD: list[RawRow] = [(b"k", b"bad", 0, 0), (b"k", b"bad", 0, 1)]


def orders(bench: Bench, **target: Any) -> BatchTable:
    return keyed_table(bench, a_pipeline(**target))


def keys(table: BatchTable) -> list[int]:
    """As Spark reads them."""
    return sorted(row["order_id"] for row in table.sql("SELECT order_id FROM {table}"))


def test_an_entry_alone_is_a_small_commit_beside_merges(bench: Bench) -> None:
    table = orders(bench)
    born = table.record()
    assert table.entry == born.empty_entry()
    table.land(GOOD)
    table.record()
    table.land([(b"1", None, 0, 4)])

    assert table.ways() == ["driver", "spark", "driver", "spark"]
    assert table.log.table(born.app).txn == 4
    assert keys(table) == [0, 2, 3]


def test_a_batch_without_a_good_record_is_counted_kept_and_not_merged(bench: Bench) -> None:
    table = orders(bench)
    table.land(BAD)

    assert table.ways() == ["driver"]
    assert table.entry.rows == (RowCounts(0, 2),)
    assert len(table.bad(table.entry.commit)) == 2
    assert keys(table) == []


@pytest.mark.thorough
def test_rows_are_merged_also_where_a_metric_that_counts_them_was_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(bench, commit="spark")  # so that Spark counts
    lost = {"counts": "[]", "deleting": 0}
    monkeypatch.setattr(Observation, "get", property(lambda _: lost))
    table.land(GOOD)
    assert keys(table) == [0, 1, 2, 3]


@pytest.mark.thorough
def test_a_rival_in_the_way_leaves_the_commit_of_a_batch_to_spark(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's commit that adds nothing conflicts with nobody: so nothing is read again."""
    table = orders(bench)
    plan = table.plan(BAD)
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    table.land(BAD, plan)
    assert table.entry.commit == plan.commit

    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (order_id) VALUES (9)"))
    plan = table.land([(b"k", b"bad", 0, 2)])
    assert table.entry.commit == plan.commit
    assert table.ways() == ["spark", "spark", "spark", "spark"]
    assert keys(table) == [9]


def test_a_stale_plan_is_not_committed(bench: Bench) -> None:
    table = orders(bench)
    stale = table.plan(BAD)
    table.record()
    version = table.version
    table.land(BAD, replace(stale, base=version))
    table.record(replace(stale, base=version))
    assert table.version == version


@pytest.mark.thorough
def test_a_table_that_asks_for_spark_gets_its_entries_through_it(bench: Bench) -> None:
    table = orders(bench)
    table.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (order_id < 1000)")
    table.record()
    table.land(BAD)
    assert table.ways() == ["spark"] * 3
    assert table.entry.rows == (RowCounts(0, 2),)


@pytest.mark.thorough
def test_the_configuration_may_ask_for_spark(bench: Bench) -> None:
    table = orders(bench, commit="spark")
    table.record()
    table.land(BAD)
    assert table.ways() == ["spark"] * 2


@pytest.mark.thorough
def test_where_threads_have_none_in_the_jvm_spark_commits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_commits, "can_lock", lambda session: False)
    table = orders(bench)
    table.record()
    assert table.ways() == ["spark"]


@pytest.mark.thorough
def test_checkpoints_of_the_driver_keep_what_merges_have_deleted(bench: Bench) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "2"}
    table = orders(bench, properties=properties)
    table.land(GOOD)
    table.land([(b"1", b'{"order_id": 1, "rank": 2}', 0, 4)])
    table.land([(b"2", None, 0, 5)])
    assert '"deletionVector":' in (table.path / "_delta_log" / f"{3:020}.json").read_text()
    table.record()
    assert table.version == 4
    assert (table.path / "_delta_log" / f"{4:020}.checkpoint.parquet").exists()

    for version in range(4):  # from the checkpoint alone
        (table.path / "_delta_log" / f"{version:020}.json").unlink()
    jvm: Any = bench.spark.sparkContext._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert keys(table) == [0, 1, 3]
    table.land([(b"7", b'{"order_id": 7, "rank": 2}', 0, 6)])
    assert keys(table) == [0, 1, 3, 7]
