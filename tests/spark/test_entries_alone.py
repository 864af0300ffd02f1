"""Commits of keyed tables that bring no rows: small ones by the driver, where that is safe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import Observation

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import CommitPlan, entry_of
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import RawBatch
from rivermouth.write.landings import driver_commits
from rivermouth.write.landings.merge import Merge
from tests.landing import land
from tests.spark.conftest import Bench, RawRow, a_pipeline
from tests.spark.files_table import InFolder, at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOOD: list[RawRow] = [(b"%d" % n, b'{"order_id": %d, "rank": 1}' % n, 0, n) for n in range(4)]
BAD: list[RawRow] = [(b"k", b"bad", 0, 0), (b"k", b"bad", 0, 1)]


@dataclass
class Orders(InFolder):
    """A keyed table, and what lands in it."""

    pipeline: Pipeline
    landing: Merge
    position: Position = field(default_factory=Position)
    sequence: int = 0

    def plan(self, rows: list[RawRow]) -> CommitPlan:
        """The plan of the next commit, which follows on the newest one."""
        self.sequence += 1
        return replace(self.bench.plan(self.sequence, rows, self.position), base=self.version)

    def record(self) -> CommitPlan:
        plan = self.plan([])
        self.landing.record(self.bench.spark, plan)
        return plan

    def land(self, rows: list[RawRow], plan: CommitPlan | None = None) -> None:
        plan = plan or self.plan(rows)
        land(self.landing, RawBatch(self.bench.raw(rows), decoder(self.pipeline)), plan)

    def newest(self) -> Entry:
        """The entry of the newest commit."""
        entry = entry_of([*self.log.commits()][-1], "p")
        assert entry is not None
        return entry

    def keys(self) -> list[int]:
        return sorted(row["order_id"] for row in self.sql("SELECT order_id FROM {table}"))

    def held(self) -> int:
        """How many records are in quarantine under the id of the newest commit."""
        rows = DeltaTable(f"{self.log.path}_quarantine").to_pyarrow_table()["commit"].to_pylist()
        return int(rows.count(self.newest().commit))


def orders(bench: Bench, **target: Any) -> Orders:
    pipeline = a_pipeline(**target)
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    return Orders(bench, "orders", pipeline, Merge(site))


def test_an_entry_alone_is_a_small_commit_beside_merges(bench: Bench) -> None:
    table = orders(bench)
    born = table.record()
    assert table.newest() == born.empty_entry()
    table.land(GOOD)
    table.record()
    table.land([(b"1", None, 0, 4)])

    assert table.ways() == ["driver", "spark", "driver", "spark"]
    assert table.log.table(born.app).txn == 4
    assert table.keys() == [0, 2, 3]


def test_a_batch_without_a_good_record_is_counted_kept_and_not_merged(bench: Bench) -> None:
    table = orders(bench)
    table.land(BAD)

    assert table.ways() == ["driver"]
    assert table.newest().rows == (RowCounts(0, 2),)
    assert table.held() == 2
    assert table.keys() == []


@pytest.mark.thorough
def test_rows_are_merged_also_where_a_metric_that_counts_them_was_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(bench, commit="spark")  # so that Spark counts
    lost = {"counts": "[]", "deleting": 0}
    monkeypatch.setattr(Observation, "get", property(lambda _: lost))
    table.land(GOOD)
    assert table.keys() == [0, 1, 2, 3]


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [[], BAD], ids=["an entry alone", "a bad batch"])
def test_a_rival_in_the_way_leaves_the_commit_to_spark(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rows: list[RawRow]
) -> None:
    """Spark's commit that adds nothing conflicts with nobody: so nothing is read again."""
    table = orders(bench)
    plan = table.plan(rows)
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    table.land(rows, plan) if rows else table.landing.record(bench.spark, plan)
    assert table.newest().commit == plan.commit

    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (order_id) VALUES (9)"))
    plan = table.plan(rows)
    table.land(rows, plan) if rows else table.landing.record(bench.spark, plan)
    assert table.newest().commit == plan.commit
    assert table.ways() == ["spark", "spark", "spark", "spark"]
    assert table.keys() == [9]


def test_a_stale_plan_is_not_committed(bench: Bench) -> None:
    table = orders(bench)
    stale = table.plan(BAD)
    table.sequence = 1
    table.record()
    version = table.version
    table.land(BAD, replace(stale, base=version))
    table.landing.record(bench.spark, replace(stale, base=version))
    assert table.version == version


@pytest.mark.thorough
def test_a_table_that_asks_for_spark_gets_its_entries_through_it(bench: Bench) -> None:
    table = orders(bench)
    table.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (order_id < 1000)")
    table.record()
    table.land(BAD)
    assert table.ways() == ["spark"] * 3
    assert table.newest().rows == (RowCounts(0, 2),)


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
    assert '"deletionVector":' in (table.log.path / "_delta_log" / f"{3:020}.json").read_text()
    table.record()
    assert table.version == 4
    assert (table.log.path / "_delta_log" / f"{4:020}.checkpoint.parquet").exists()

    for version in range(4):  # from the checkpoint alone
        (table.log.path / "_delta_log" / f"{version:020}.json").unlink()
    jvm: Any = bench.spark.sparkContext._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert table.keys() == [0, 1, 3]
    table.land([(b"7", b'{"order_id": 7, "rank": 2}', 0, 6)])
    assert table.keys() == [0, 1, 3, 7]
