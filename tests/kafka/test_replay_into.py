"""``rivermouth replay`` into another table on real parts: each row is written there once."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.errors import ReplayRefused
from tests.faults.outcomes import went_well
from tests.kafka.replaying import by_key, problems, replay
from tests.kafka.test_replay import ORDERS, filled
from tests.lake import Lake, append_pipeline, bid, totals_pipeline, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

MOST = 2**63 - 1
"""The greatest sum; two of them do not fit."""


def test_rows_go_into_another_table_once(lake: Lake, rivermouth_spark: SparkSession) -> None:
    topic = "replay-into"
    lake.topic(topic, 2)
    lake.configure(p=append_pipeline(topic))
    lake.produce(topic, [(None, bid(i), i % 2) for i in range(20)])
    lake.produce(topic, [(None, b"{oops", 0)])
    went_well(lake.run(rivermouth_spark, "p"))
    with pytest.raises(ReplayRefused, match="mode append cannot be replayed in place"):
        replay(lake, rivermouth_spark, "earliest")
    with pytest.raises(ReplayRefused, match="no pipeline writes"):
        replay(lake, rivermouth_spark, "earliest", into="bronze.replay_into")

    begin, end = f"{topic}:0:8,{topic}:1:2", f"{topic}:1:4"
    shown = replay(lake, rivermouth_spark, begin, end, "repair.bids", dry_run=True)
    assert (shown.written, shown.plan.inserted) == (False, 4)
    assert [(each.records, each.bad) for each in shown.plan.ranges] == [(3, 1), (2, 0)]
    assert not lake.path("repair.bids").exists()
    assert replay(lake, rivermouth_spark, begin, end, "repair.bids").written

    again = replay(lake, rivermouth_spark, begin, end, "repair.bids")
    assert (again.written, again.plan.there, again.plan.rows) == (False, True, 0)
    with pytest.raises(ReplayRefused, match="by another replay"):
        replay(lake, rivermouth_spark, f"{topic}:0:7", into="repair.bids")
    assert replay(lake, rivermouth_spark, f"{topic}:0:6", f"{topic}:0:8", "repair.bids").written
    places = [
        (row["_kafka"]["partition"], row["_kafka"]["offset"]) for row in lake.rows("repair.bids")
    ]
    assert sorted(places) == [(0, 6), (0, 7), (0, 8), (0, 9), (1, 2), (1, 3)]
    whole = {row["auction"]: row for row in lake.rows("bronze.replay_into")}
    assert all(whole[row["auction"]] == row for row in lake.rows("repair.bids"))
    assert problems(lake) == []


def test_a_replay_that_was_faster_while_somebody_was_asked_is_seen(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic = "replay-raced"
    lake.topic(topic)
    lake.configure(p=append_pipeline(topic))
    lake.produce(topic, [(None, bid(i), 0) for i in range(10)])
    went_well(lake.run(rivermouth_spark, "p"))

    def again(begin: int, end: int, into: str, meanwhile: Any = lambda: None) -> Any:
        asked = (f"{topic}:0:{begin}", f"{topic}:0:{end}", into)
        return replay(lake, rivermouth_spark, *asked, meanwhile=meanwhile)

    with pytest.raises(ReplayRefused, match="by another replay"):
        again(0, 6, "repair.raced", lambda: again(3, 8, "repair.raced"))
    assert sorted(each["auction"] for each in lake.rows("repair.raced")) == [3, 4, 5, 6, 7]

    twice = again(0, 6, "repair.same", lambda: again(0, 6, "repair.same"))
    assert not twice.written
    assert len(lake.rows("repair.same")) == 6


def test_a_replay_from_a_time_to_a_time_reads_what_came_between_them(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic = "replay-times"
    lake.topic(topic, 2)
    lake.configure(p=append_pipeline(topic))
    begin = datetime.fromtimestamp(int(time.time()) - 100, timezone.utc)
    producer = Producer({"bootstrap.servers": lake.servers})
    for second in range(10):
        stamp = int(begin.timestamp() + second) * 1000
        producer.produce(topic, bid(second), partition=second % 2, timestamp=stamp)
    producer.flush()
    went_well(lake.run(rivermouth_spark, "p"))

    def at(second: float) -> str:
        return (begin + timedelta(seconds=second)).isoformat()

    found = replay(lake, rivermouth_spark, at(3), at(6.5), "repair.times")
    assert (found.written, found.plan.inserted) == (True, 4)
    assert sorted(row["auction"] for row in lake.rows("repair.times")) == [3, 4, 5, 6]
    shown = replay(lake, rivermouth_spark, at(9), into="repair.last", dry_run=True)
    assert [str(each) for each in shown.plan.ranges if each.records] == [
        f"{topic}-1[4,5): 1 record"
    ]
    assert problems(lake) == []


def test_keys_go_into_another_table_as_one_batch(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    filled(lake, rivermouth_spark, "replay-keys", upsert_pipeline, ORDERS)
    found = replay(lake, rivermouth_spark, "replay-keys:0:0", into="repair.orders")
    assert (found.written, found.plan.inserted) == (True, 2)
    assert by_key(lake, "repair.orders", "order_id", "status") == {1: "b", 3: "c"}
    assert replay(lake, rivermouth_spark, "replay-keys:0:0", into="repair.orders").plan.there
    with pytest.raises(ReplayRefused, match="each key may have one row"):
        replay(lake, rivermouth_spark, "replay-keys:1:0", into="repair.orders")
    assert problems(lake) == []


def test_totals_of_ranges_go_into_another_table_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic, table = "replay-totals", "gold.replay_totals"
    lake.topic(topic, 2)
    lake.configure(p=totals_pipeline(topic))
    lake.produce(topic, [(None, bid(1, 10), 0), (None, bid(2, MOST), 0), (None, bid(3, 5), 1)])
    went_well(lake.run(rivermouth_spark, "p"))
    lake.produce(topic, [(None, bid(1, 20), 1), (None, bid(2, 1), 0), (None, b"{oops", 0)])
    went_well(lake.run(rivermouth_spark, "p"))
    right = {1: (2, 30), 2: (1, MOST), 3: (1, 5)}
    assert by_key(lake, table, "auction", "n", "spent") == right
    with pytest.raises(ReplayRefused, match="mode aggregate cannot be replayed in place") as said:
        replay(lake, rivermouth_spark, "earliest")
    assert "--into" in said.value.remedy

    begin, into = f"{topic}:0:1,{topic}:1:0", "repair.totals"
    shown = replay(lake, rivermouth_spark, begin, into=into, dry_run=True)
    # In one batch the records of key 2 do not fit, so all of them are bad.
    assert [(each.records, each.bad) for each in shown.plan.ranges] == [(3, 3), (2, 0)]
    assert (shown.written, shown.plan.inserted) == (False, 2)
    assert not lake.path(into).exists()

    done = replay(lake, rivermouth_spark, begin, into=into)
    assert (done.plan, done.written) == (shown.plan, True)
    assert by_key(lake, into, "auction", "n", "spent") == {1: (1, 20), 3: (1, 5)}
    assert [each["bidders"] for each in lake.rows(into)] == [1, 1]
    version = DeltaTable(str(lake.path(into))).version()
    again = replay(lake, rivermouth_spark, begin, into=into)
    assert (again.written, again.plan.there, again.plan.rows) == (False, True, 0)
    with pytest.raises(ReplayRefused, match="each key may have one row"):
        replay(lake, rivermouth_spark, f"{topic}:0:0", into=into)
    assert DeltaTable(str(lake.path(into))).version() == version
    assert replay(lake, rivermouth_spark, f"{topic}:0:0", f"{topic}:0:2", "repair.more").written
    assert by_key(lake, "repair.more", "auction", "n", "spent") == {1: (1, 10), 2: (1, MOST)}
    assert by_key(lake, table, "auction", "n", "spent") == right
    assert problems(lake) == []
