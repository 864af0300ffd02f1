"""Commits that bring no rows: small ones by the driver, or through Spark where the table asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import CommitPlan, entry_of
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import Site
from rivermouth.write.landings.driver_commits import record
from tests.spark.conftest import Bench
from tests.spark.files_table import GOOD, InFolder, at

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass
class Sending(InFolder):
    """A pipeline that sends, and the table of its ledger."""

    site: Site

    def plan(self, sequence: int) -> CommitPlan:
        """The plan of a commit that follows on the newest one."""
        return replace(self.bench.plan(sequence, GOOD, Position()), base=self.version)

    def record(self, plan: CommitPlan) -> None:
        record(self.site, plan)

    def newest(self) -> Entry | None:
        """The entry of the newest commit, if it has one."""
        return entry_of([*self.log.commits()][-1], "p")


def sending(bench: Bench, **target: Any) -> Sending:
    pipeline = Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": "n BIGINT",
            "target": {"table": "rivermouth.ledger_p", "mode": "send", "kafka": "out", **target},
        }
    )
    site = bench.site(pipeline, "ledger")
    create_target(bench.spark, pipeline, site.address)
    return Sending(bench, "ledger", site)


def test_an_entry_alone_is_a_small_commit_by_the_driver(bench: Bench) -> None:
    made = sending(bench)
    plan = made.plan(1)
    made.record(plan)

    assert made.ways() == ["driver"]
    assert made.newest() == plan.empty_entry()
    assert made.log.table(plan.app).txn == 1
    assert bench.address("ledger").read(bench.spark).collect() == []
    made.record(made.plan(2))
    assert made.ways() == ["driver", "driver"]


def test_a_rival_that_comes_before_the_commit_or_in_it_wins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sending(bench)
    late = made.plan(1)
    made.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    with pytest.raises(CommitConflict, match="in the way"):
        made.record(late)

    at(monkeypatch, "P17", lambda: made.sql("INSERT INTO {table} (n) VALUES (1)"))
    with pytest.raises(CommitConflict, match="in the way"):
        made.record(made.plan(1))
    assert made.newest() is None

    made.record(made.plan(1))
    assert made.newest() is not None


def test_an_entry_whose_plan_is_stale_is_not_committed(bench: Bench) -> None:
    made = sending(bench)
    made.record(made.plan(2))
    version = made.version
    made.record(made.plan(2))
    made.record(made.plan(1))
    assert made.version == version


@pytest.mark.thorough
def test_a_table_that_asks_for_spark_gets_its_entries_through_it_until_it_no_longer_does(
    bench: Bench,
) -> None:
    made = sending(bench)
    made.record(made.plan(1))
    made.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (n < 1000)")
    made.record(made.plan(2))
    assert made.ways() == ["driver", "spark", "spark"]
    assert (entry := made.newest()) is not None
    assert entry.sequence == 2

    made.sql("ALTER TABLE {table} DROP CONSTRAINT small")
    made.record(made.plan(3))
    assert made.ways()[-1] == "driver"


@pytest.mark.takes_long("not where tasks write")
@pytest.mark.parametrize(
    ("target", "site"),
    [({"commit": "spark"}, {}), ({}, {"store": None})],
    ids=["as configured", "not where tasks write"],
)
def test_where_the_driver_may_not_commit_spark_does(
    bench: Bench, target: dict[str, str], site: dict[str, Any]
) -> None:
    made = sending(bench, **target)
    made.site = replace(made.site, **site)
    made.record(made.plan(1))

    assert made.ways() == ["spark"]
    assert (entry := made.newest()) is not None
    assert entry.sequence == 1
