"""A replay that is killed, in place and into another table: run again, it ends right."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import TableName, load
from rivermouth.replay.command import Rereading
from rivermouth.replay.report import Replayed
from rivermouth.replay.request import read_bound
from rivermouth.verify import verify
from tests.faults.campaign.paths import Paths
from tests.faults.outcomes import went_well
from tests.lake import (
    Lake,
    append_pipeline,
    bid,
    insert_pipeline,
    order,
    totals_pipeline,
    upsert_pipeline,
)
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def killed(lake: Lake, spark: SparkSession, point: str, into: str = "") -> None:
    words, failpoints = ("p", "earliest", into), f"{point}=kill"
    with lake.driver(*words, spark=spark, failpoints=failpoints, kind="replay") as process:
        said = said_by(process)
    assert process.returncode == -signal.SIGKILL, said


def again(lake: Lake, spark: SparkSession, into: str = "") -> Replayed:
    table = TableName.parse(into) if into else None
    replaying = Rereading(load(lake.file), spark, lake.scratch)
    return replaying.replay("p", read_bound("--from", "earliest"), into=table)


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize(("point", "done"), [("P3", False), ("P6", True), ("P7", True)])
def test_a_killed_replay_runs_again_and_ends_right(
    lake: Lake, rivermouth_spark: SparkSession, point: str, done: bool
) -> None:
    topic = f"killed-replay-{point.lower()}"
    lake.topic(topic)
    config = lake.configure(p=upsert_pipeline(topic))
    lake.produce(topic, [(b"%d" % n, order(n, "a", n), 0) for n in range(6)])
    went_well(lake.run(rivermouth_spark, "p"))
    table = str(config.pipelines["p"].target.table)
    rivermouth_spark.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE order_id = 3")

    killed(lake, rivermouth_spark, point)

    assert (3 in {row["order_id"] for row in lake.rows(table)}) is done
    assert again(lake, rivermouth_spark).written is not done
    assert verify(config).ok
    lake.produce(topic, [(b"9", order(9, "b", 9), 0)])
    went_well(lake.run(rivermouth_spark, "p", audit=True))
    [found] = verify(config).pipelines
    assert (found.problems, found.ok) == ((), True)


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize(("point", "done"), [("P3", False), ("P6", True), ("P7", True)])
def test_a_killed_replay_of_first_rows_runs_again_and_ends_right(
    lake: Lake,
    rivermouth_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    done: bool,
) -> None:
    topic = f"killed-first-{point.lower()}"
    trace = lake.folder / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(trace))
    lake.topic(topic)
    config = lake.configure(p=insert_pipeline(topic))
    table = str(config.pipelines["p"].target.table)
    for price in (1, 2):
        lake.produce(topic, [(None, bid(n, price), 0) for n in range(6)])
        went_well(lake.run(rivermouth_spark, "p"))
    rivermouth_spark.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE auction = 3")

    killed(lake, rivermouth_spark, point)

    assert (3 in {row["auction"] for row in lake.rows(table)}) is done
    assert again(lake, rivermouth_spark).written is not done
    assert verify(config).ok
    lake.produce(topic, [(None, bid(n, 3), 0) for n in (3, 9)])
    went_well(lake.run(rivermouth_spark, "p", audit=True))
    [found] = verify(config).pipelines
    assert (found.problems, found.ok) == ((), True)
    assert {row["auction"]: row["price"] for row in lake.rows(table)} == {
        **dict.fromkeys(range(6), 1),
        9: 3,
    }
    assert Paths(trace, {"p": lake.path(table)}).check() == []


@pytest.mark.thorough
@pytest.mark.kill
def test_a_killed_replay_into_another_table_adds_each_row_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("killed-into")
    lake.configure(p=append_pipeline("killed-into"))
    lake.produce("killed-into", [(None, bid(n), 0) for n in range(6)])
    went_well(lake.run(rivermouth_spark, "p"))
    for point in ("P2", "P3", "P6"):
        killed(lake, rivermouth_spark, point, "repair.bids")
    assert again(lake, rivermouth_spark, "repair.bids").plan.there
    assert sorted(row["auction"] for row in lake.rows("repair.bids")) == [*range(6)]


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize("make", [insert_pipeline, totals_pipeline])
def test_a_killed_replay_of_keys_into_another_table_writes_each_row_once(
    lake: Lake, rivermouth_spark: SparkSession, make: Callable[[str], dict[str, Any]]
) -> None:
    topic = f"killed-{make.__name__.replace('_', '-')}"
    lake.topic(topic)
    lake.configure(p=make(topic))
    lake.produce(topic, [(None, bid(n % 3), 0) for n in range(6)])
    went_well(lake.run(rivermouth_spark, "p"))
    for point in ("P2", "P3", "P6"):
        killed(lake, rivermouth_spark, point, "repair.bids")
    assert again(lake, rivermouth_spark, "repair.bids").plan.there
    rows = lake.rows("repair.bids")
    assert sorted(row["auction"] for row in rows) == [0, 1, 2]
    assert {row.get("n", 2) for row in rows} == {2}
