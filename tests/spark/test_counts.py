"""Counting the records of many ranges on a real Spark: exact, and not dearer than of few."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.evaluation import InlineCounter, grouped_counts
from tests.builders import span

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPICS = ("a", "b.c-d_e")


def decoded(spark: SparkSession, records: int, partitions: int, tasks: int) -> DataFrame:
    """Good records, in turn on ``partitions`` of each topic; those with odd numbers on more."""
    number = F.col("id")
    topic = F.element_at(F.array(*map(F.lit, TOPICS)), (number % 2 + 1).cast("int"))
    partition = (F.floor(number / 2) % partitions).cast("int")
    kafka = F.struct(topic.alias("topic"), partition.alias("partition"), number.alias("offset"))
    code = F.lit(None).cast("string").alias("code")
    return spark.range(0, records, 1, tasks).select(kafka.alias("_kafka"), code, number)


def ranges_of(records: int, partitions: int) -> list[OffsetRange]:
    return [span(0, records, n, topic) for topic in TOPICS for n in range(partitions)]


@pytest.mark.takes_long("20-1000-3", "10007-8-3", "10007-1000-300")
@pytest.mark.parametrize(
    ("records", "partitions", "tasks"),
    [(1, 1, 1), (20, 1_000, 3), (10_007, 8, 3), (10_007, 9, 3), (10_007, 1_000, 300)],
)
def test_each_range_is_counted_exactly(
    rivermouth_spark: SparkSession, records: int, partitions: int, tasks: int
) -> None:
    rows = decoded(rivermouth_spark, records, partitions, tasks)
    ranges = ranges_of(10_007, partitions)
    counting = InlineCounter(ranges)
    counting.watched(rows).groupBy("id").count().localCheckpoint()

    found = counting.counts(lambda: rows.limit(0))  # of the metric: nothing to count again

    assert found == grouped_counts(rows, ranges)
    assert sum(each.applied for each in found) == records


def test_rows_that_spark_counted_twice_are_counted_again(rivermouth_spark: SparkSession) -> None:
    rows, ranges = decoded(rivermouth_spark, 10, 1, 2), [span(0, 9, 0, each) for each in TOPICS]
    counting = InlineCounter(ranges)
    counting.watched(rows.union(rows)).groupBy("id").count().localCheckpoint()

    assert counting.counts(lambda: rows) == (RowCounts(5, 0), RowCounts(5, 0))


def test_a_further_aggregate_is_told_beside_the_counts(rivermouth_spark: SparkSession) -> None:
    rows, ranges = decoded(rivermouth_spark, 10, 1, 2), ranges_of(10, 1)
    counting = InlineCounter(ranges)
    counting.watched(rows, big=F.count_if(F.col("id") > 6)).groupBy("id").count().localCheckpoint()

    assert counting.metric("big") == 3


def aggregates(node: Any) -> int:
    """How many aggregates are in an expression of Spark's."""
    children = node.children()
    inside = sum(aggregates(children.apply(n)) for n in range(children.size()))
    return inside + int(node.getClass().getSimpleName() == "AggregateExpression")


@pytest.mark.parametrize("number", [17, 2_000])
def test_one_aggregate_counts_many_ranges(rivermouth_spark: SparkSession, number: int) -> None:
    """Each aggregate is asked for each record."""
    rows, ranges = decoded(rivermouth_spark, 10, 1, 1), ranges_of(1, 1_000)[-number:]
    plan = InlineCounter(ranges).watched(rows)._jdf.queryExecution().analyzed()

    metrics = plan.metrics()

    assert [aggregates(metrics.apply(n)) for n in range(metrics.size())] == [1]


def test_the_calls_into_the_jvm_do_not_grow_with_the_ranges(
    rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = decoded(rivermouth_spark, 10, 1, 1)
    gateway = rivermouth_spark.sparkContext._gateway
    assert gateway is not None
    client = gateway._gateway_client
    send = client.send_command
    calls: list[str] = []

    def counted(command: str, *more: object, **named: object) -> object:
        if not command.startswith("m\nd\n"):  # the collector of garbage, which comes at any time
            calls.append(command)
        return send(command, *more, **named)

    monkeypatch.setattr(client, "send_command", counted)
    InlineCounter(ranges_of(1, 9)).watched(rows)
    few = len(calls)
    calls.clear()
    InlineCounter(ranges_of(1, 2_000)).watched(rows)

    assert few
    assert len(calls) == few
