"""``rivermouth replay`` on real parts: rows are put right, and the proof still holds."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.errors import ReplayRefused
from rivermouth.run.run import Run
from rivermouth.testing import Record
from tests.faults.outcomes import went_well
from tests.kafka.replaying import problems, replay, sql
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def by_ledger(topic: str, **source: Any) -> dict[str, Any]:
    """An upsert pipeline without ``order_by``: the order of the ledger decides."""
    pipeline = upsert_pipeline(topic, **source)
    del pipeline["target"]["order_by"]
    return pipeline


def orders(topic: str) -> list[list[Record]]:
    """Records for three batches. Key 1 moves between the partitions, 2 is deleted, 3 comes back."""
    return [
        [(b"1", order(1, "a", 50), 1), (b"2", order(2, "a", 1), 0), (b"3", order(3, "a", 1), 0)],
        [(b"1", order(1, "b", 51), 0), (b"3", None, 0), (b"4", order(4, "b", 9), 1)],
        [(b"2", None, 0), (b"3", order(3, "c", 2), 0), (b"5", b"{oops", 1)],
    ]


def filled(lake: Lake, spark: SparkSession, topic: str, pipeline: dict[str, Any]) -> Path:
    """A table after three batches."""
    lake.topic(topic, 2)
    config = lake.configure(p=pipeline)
    for records in orders(topic):
        lake.produce(topic, records)
        went_well(lake.run(spark, "p"))
    return lake.path(str(config.pipelines["p"].target.table))


def statuses(lake: Lake, table: str) -> dict[int, str]:
    rows = lake.rows(table)
    found = {each["order_id"]: each["status"] for each in rows}
    assert len(found) == len(rows)
    return found


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda each: each["order_id"])


@pytest.mark.thorough
@pytest.mark.parametrize("make", [upsert_pipeline, by_ledger])
def test_rows_that_others_changed_are_put_right_and_all_is_proved(
    lake: Lake, rivermouth_spark: SparkSession, make: Any
) -> None:
    topic = f"replay-{make.__name__.replace('_', '-')}"
    path = filled(lake, rivermouth_spark, topic, make(topic))
    table = f"silver.{topic.replace('-', '_')}"
    right = lake.rows(table)
    assert statuses(lake, table) == {1: "b", 3: "c", 4: "b"}
    sql(rivermouth_spark, path, "DELETE FROM TABLE WHERE order_id = 1")
    sql(rivermouth_spark, path, "UPDATE TABLE SET status = 'wrong' WHERE order_id = 3")
    sql(
        rivermouth_spark,
        path,
        "INSERT INTO TABLE SELECT 2, 'back', 1, updated_at, _kafka FROM TABLE WHERE order_id = 4",
    )
    assert len(problems(lake)) == 3
    before = DeltaTable(str(path)).version()

    shown = replay(lake, rivermouth_spark, "earliest", dry_run=True)

    plan = shown.plan
    assert not shown.written
    assert (plan.inserted, plan.updated, plan.deleted) == (1, 1, 1)
    assert [str(each) for each in plan.ranges] == [
        f"{topic}-0[0,6): 6 records",
        f"{topic}-1[0,3): 3 records, 1 of them bad",
    ]
    assert DeltaTable(str(path)).version() == before
    done = replay(lake, rivermouth_spark, "earliest")
    assert (done.plan, done.written) == (plan, True)
    assert problems(lake) == []
    assert by_id(lake.rows(table)) == by_id(right)
    lake.produce(topic, [(b"6", order(6, "d", 3), 0)])
    went_well(lake.run(rivermouth_spark, "p", audit=True))
    assert problems(lake) == []
    again = replay(lake, rivermouth_spark, "earliest")
    assert (again.written, again.plan.rows) == (False, 0)

    sql(rivermouth_spark, path, "UPDATE TABLE SET status = 'wrong' WHERE order_id = 4")
    [line] = problems(lake)
    assert "status" in line, "a replay hides nothing that is changed after it"


@pytest.mark.thorough
def test_in_place_only_what_leaves_the_rows_of_the_first_reading(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    path = filled(lake, rivermouth_spark, "replay-refused", upsert_pipeline("replay-refused"))

    def refused(begin: str, end: str = "") -> str:
        with pytest.raises(ReplayRefused) as found:
            replay(lake, rivermouth_spark, begin, end)
        return str(found.value)

    # Its newest record is in the second batch, and the first one holds one of the same time.
    sql(rivermouth_spark, path, "DELETE FROM TABLE WHERE order_id = 4")
    version = DeltaTable(str(path)).version()
    assert "an earlier record may be newer by order_by" in refused("replay-refused:1:1")
    assert "Leave out --to" in refused("earliest", "replay-refused:0:5")
    assert "read up to 6" in refused("replay-refused:0:7")
    Run(load(lake.file), rivermouth_spark, lake.scratch, continuous=False).accept_deletes(
        "p", [version], lambda _: None
    )
    assert "whose DELETE was accepted" in refused("replay-refused:0:0")
    with pytest.raises(ReplayRefused, match="nothing to replay"):
        replay(lake, rivermouth_spark, "earliest")
    assert problems(lake) == []


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_keys_go_into_another_table_as_one_batch(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    filled(lake, rivermouth_spark, "replay-keys", upsert_pipeline("replay-keys"))
    found = replay(lake, rivermouth_spark, "replay-keys:0:0", into="repair.orders")
    assert (found.written, found.plan.inserted) == (True, 2)
    assert statuses(lake, "repair.orders") == {1: "b", 3: "c"}
    assert replay(lake, rivermouth_spark, "replay-keys:0:0", into="repair.orders").plan.there
    with pytest.raises(ReplayRefused, match="each key may have one row"):
        replay(lake, rivermouth_spark, "replay-keys:1:0", into="repair.orders")
    assert problems(lake) == []


def test_the_command_shows_asks_and_answers(lake: Lake, rivermouth_spark: SparkSession) -> None:
    filled(lake, rivermouth_spark, "replay-said", by_ledger("replay-said"))
    sql(rivermouth_spark, lake.path("silver.replay_said"), "DELETE FROM TABLE WHERE order_id = 4")

    def said(*words: str, answer: str = "") -> tuple[int, str, str]:
        ended = lake.command("replay", "p", *words, spark=rivermouth_spark, answer=answer)
        return ended.returncode, ended.stdout, ended.stderr

    code, out, err = said("--from", "earliest", "--json", answer="y\n")
    assert code == 0, err
    assert "silver.replay_said: 1 to insert, 0 to update, 0 to delete" in err
    assert "Write this?" in err
    told = json.loads(out)
    assert (told["written"], told["records"], told["sequence"]) == (True, 9, 5)
    assert told["rows"] == {"inserted": 1, "updated": 0, "deleted": 0}
    assert problems(lake) == []
