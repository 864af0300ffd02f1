"""``rivermouth replay`` of first rows on real parts: all that was read is applied, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition as NativeTopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.errors import ReplayRefused
from rivermouth.testing import Record
from tests.faults.outcomes import went_well
from tests.kafka.replaying import problems, replay, sql
from tests.lake import Lake, bid, insert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BATCHES: list[list[Record]] = [
    [(None, bid(1, 10), 1), (None, bid(2, 11), 0), (None, bid(2, 12), 0), (None, bid(2, 13), 1)],
    [(None, bid(1, 20), 0), (None, bid(3, 21), 1), (None, b"{oops", 1), (None, bid(4, 22), 1)],
    [(None, bid(3, 30), 0), (None, bid(5, 31), 0), (None, bid(4, 32), 0)],
]
"""Each price is there once. By place alone the repeats of 1, 3 and 4 would be the first records."""
FIRST = {1: 10, 2: 11, 3: 21, 4: 22, 5: 31}


def filled(lake: Lake, spark: SparkSession, topic: str) -> str:
    """A table after three batches; before the last one somebody has deleted the row of 4."""
    lake.topic(topic, 2)
    table = str(lake.configure(p=insert_pipeline(topic)).pipelines["p"].target.table)
    for number, records in enumerate(BATCHES):
        if number == 2:
            sql(spark, lake.path(table), "DELETE FROM TABLE WHERE auction = 4")
        lake.produce(topic, records)
        went_well(lake.run(spark, "p"))
    return table


def prices(lake: Lake, table: str) -> dict[int, int]:
    rows = lake.rows(table)
    found = {each["auction"]: each["price"] for each in rows}
    assert len(found) == len(rows)
    return found


def written(lake: Lake, table: str) -> dict[str, int]:
    """The rows that the newest commit has changed, as Spark counted them."""
    [newest] = DeltaTable(str(lake.path(table))).history(1)
    told: dict[str, Any] = newest["operationMetrics"]
    names = {"Inserted": "inserted", "Updated": "updated", "Deleted": "deleted"}
    return {name: int(told[f"numTargetRows{each}"]) for each, name in names.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("begin", ["earliest", "replay-first-offset:0:4"])
def test_first_rows_are_put_right_from_all_that_was_ever_read(
    lake: Lake, rivermouth_spark: SparkSession, begin: str
) -> None:
    topic = begin.partition(":")[0] if ":" in begin else "replay-first"
    table = filled(lake, rivermouth_spark, topic)
    path = lake.path(table)
    assert prices(lake, table) == {**FIRST, 4: 32}, "a repeat has become a first row"
    sql(rivermouth_spark, path, "DELETE FROM TABLE WHERE auction IN (1, 2)")
    sql(rivermouth_spark, path, "UPDATE TABLE SET bidder = 0 WHERE auction = 3")
    assert len(problems(lake)) == 4
    version = DeltaTable(str(path)).version()

    shown = replay(lake, rivermouth_spark, begin, dry_run=True)

    plan = shown.plan
    assert (plan.since, plan.inserted, plan.updated, plan.deleted) == (2, 2, 2, 0)
    assert [str(each) for each in plan.ranges] == [
        f"{topic}-0[0,6): 6 records",
        f"{topic}-1[0,5): 5 records, 1 of them bad",
    ]
    assert not shown.written
    assert DeltaTable(str(path)).version() == version
    done = replay(lake, rivermouth_spark, begin)
    assert (done.plan, done.written) == (plan, True)
    assert written(lake, table) == {"inserted": 2, "updated": 2, "deleted": 0}
    assert prices(lake, table) == FIRST
    assert problems(lake) == []
    lake.produce(topic, [(None, bid(2, 40), 0), (None, bid(6, 41), 0)])
    went_well(lake.run(rivermouth_spark, "p", audit=True))
    assert problems(lake) == []
    again = replay(lake, rivermouth_spark, begin)
    assert (again.written, again.plan.rows) == (False, 0)
    assert prices(lake, table) == {**FIRST, 6: 41}


@pytest.mark.thorough
def test_first_rows_are_not_guessed_from_a_part(lake: Lake, rivermouth_spark: SparkSession) -> None:
    table = filled(lake, rivermouth_spark, "replay-part")
    sql(rivermouth_spark, lake.path(table), "DELETE FROM TABLE WHERE auction = 2")
    with pytest.raises(ReplayRefused, match="ends where the pipeline stands"):
        replay(lake, rivermouth_spark, "earliest", "replay-part:0:5")
    before = prices(lake, table)
    admin = AdminClient({"bootstrap.servers": lake.servers})
    [gone] = admin.delete_records([NativeTopicPartition("replay-part", 0, 1)]).values()
    gone.result()

    for begin in ("earliest", "replay-part:0:4"):
        with pytest.raises(ReplayRefused) as refused:
            replay(lake, rivermouth_spark, begin)
        assert "not all that the pipeline has read" in refused.value.what
        assert "Kafka holds offsets from 1 on" in refused.value.found
        assert "--into" in refused.value.remedy
    assert prices(lake, table) == before

    found = replay(lake, rivermouth_spark, "replay-part:0:1,replay-part:1:0", into="repair.firsts")
    assert (found.written, found.plan.inserted) == (True, 5)
    # As one batch: the least place of what Kafka holds.
    assert prices(lake, "repair.firsts") == {1: 20, 2: 12, 3: 30, 4: 32, 5: 31}
