"""Rates and minimums of a source on a real broker, whoever plans the batches."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import Source, Topics
from rivermouth.protocol.batches import next_ranges
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.run.ingest import Ingest
from rivermouth.run.report import CommitReport
from rivermouth.source.batches import reader_options, task_options
from rivermouth.source.driver_planned import read_ranges
from tests.builders import span
from tests.lake import (
    PLANNERS,
    Heard,
    Lake,
    append_pipeline,
    bid,
    continuous,
    order,
    upsert_pipeline,
)
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

RATE, EACH = 200, 500
"""Offsets of a partition in a second, and how many records each of the two partitions has."""


@dataclass
class Clocked(Heard):
    """A listener that notes when each commit was made, in seconds."""

    at: list[tuple[float, CommitReport]] = field(default_factory=list)

    def committed(self, report: CommitReport) -> None:
        super().committed(report)
        self.at.append((time.monotonic(), report))


def batches(heard: Heard, pipeline: str = "p") -> list[list[OffsetRange]]:
    """The ranges of each commit of a pipeline that moved its position."""
    moved = ([r for r in c.ranges if r.span] for c in heard.commits if c.pipeline == pipeline)
    return [each for each in moved if each]


def test_a_rate_for_each_partition_is_kept_and_nothing_is_lost_or_doubled(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """Two of them are keyed: their MERGEs take confs and a view, each from a session of its own."""
    rivermouth_spark.catalog.dropTempView("rivermouth_source")
    topics = ("rated_a", "rated_u", "rated_v")
    makes = (append_pipeline, upsert_pipeline, upsert_pipeline)
    for topic in topics:
        lake.topic(topic, 2)
    lake.produce("rated_a", [(None, bid(i), i % 2) for i in range(2 * EACH)])
    for topic in topics[1:]:
        rows = ((b"%d" % i, order(i, "open", i % 60), i % 2) for i in range(2 * EACH))
        lake.produce(topic, rows)
    settings = {"max_rate_per_partition": RATE, "min_partitions": 3}
    lake.configure(
        **{each: make(each, **settings) for each, make in zip(topics, makes, strict=True)}
    )
    heard, began = Clocked(), time.monotonic()

    lake.run(rivermouth_spark, *topics, heard=heard)

    assert [each.error for each in heard.ends] == [None] * 3
    assert not rivermouth_spark.catalog.tableExists("rivermouth_source")
    for topic in topics:
        first, *later = batches(heard, topic)
        assert {each.span for each in first} == {RATE}, "what a second allows"
        assert later, "one batch took it all"
        until = [(t, r.until_offset) for t, c in heard.at if c.pipeline == topic for r in c.ranges]
        assert all(offset <= RATE * (1 + t - began) for t, offset in until)
    for table in ("bronze.rated_a", "silver.rated_u", "silver.rated_v"):
        kafka = [row["_kafka"] for row in lake.rows(table)]
        found = sorted((each["partition"], each["offset"]) for each in kafka)
        assert found == [(p, o) for p in range(2) for o in range(EACH)], table


def below_a_minimum(lake: Lake, topic: str, delay: str, planner: str) -> None:
    """Four records, and a pipeline that waits for thirty, but not for longer than the delay."""
    lake.topic(topic)
    settings = {"min_offsets_per_trigger": 30, "max_trigger_delay": delay, **PLANNERS[planner]}
    lake.configure(p=append_pipeline(topic, **settings))
    lake.produce(topic, [(None, bid(i), 0) for i in range(4)])


@pytest.mark.thorough
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_batch_waits_until_its_minimum_is_there_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, planner: str
) -> None:
    topic = f"least-{planner}"
    below_a_minimum(lake, topic, "1h", planner)

    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: len(batches(heard)) == 1)
        lake.produce(topic, [(None, bid(i), 0) for i in range(10)])
        time.sleep(4)  # twenty triggers; four, where there is a rate
        lake.produce(topic, [(None, bid(i), 0) for i in range(20)])
        wait_for(lambda: len(batches(heard)) == 2)

    assert batches(heard) == [[span(0, 4, topic=topic)], [span(4, 34, topic=topic)]]


@pytest.mark.thorough
@pytest.mark.parametrize("planner", PLANNERS)
def test_less_than_the_minimum_is_read_once_the_delay_has_passed_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, planner: str
) -> None:
    topic = f"delayed-{planner}"
    below_a_minimum(lake, topic, "3s", planner)

    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: len(batches(heard)) == 1)
        lake.produce(topic, [(None, bid(i), 0) for i in range(10)])
        wait_for(lambda: batches(heard)[-1][0].until_offset == 14)


@pytest.mark.thorough
@pytest.mark.parametrize("planner", PLANNERS)
def test_without_a_pause_a_record_is_read_as_soon_as_it_is_there_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, planner: str
) -> None:
    topic, records = f"at-once-{planner}", 5
    lake.topic(topic)
    lake.configure(p={**append_pipeline(topic, **PLANNERS[planner]), "trigger": "0s"})

    with continuous(lake, rivermouth_spark, "p") as heard:
        for each in range(records):
            lake.produce(topic, [(None, bid(each), 0)])
            wait_for(partial(has_moved, heard, each + 1))

    assert heard.ends[0].error is None
    assert [moved.span for [moved] in batches(heard)] == [1] * records
    assert len(lake.rows(f"bronze.{topic.replace('-', '_')}")) == records


def has_moved(heard: Heard, times: int) -> bool:
    """Whether so many commits have moved the position."""
    return len(batches(heard)) == times


def test_a_run_that_ends_leaves_nothing_below_the_minimum(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """Spark's own ``availableNow`` would end after the first batch."""
    lake.topic("drained")
    settings = {"min_offsets_per_trigger": 20, "max_offsets_per_trigger": 20}
    lake.configure(p=append_pipeline("drained", **settings))
    lake.produce("drained", [(None, bid(i), 0) for i in range(50)])

    heard = lake.run(rivermouth_spark, "p")

    assert [each.span for [each] in batches(heard)] == [20, 20, 10]


@pytest.mark.takes_long("settings1")
@pytest.mark.parametrize("settings", [{"min_partitions": 3}, {"max_records_per_partition": 10}])
def test_several_tasks_read_one_large_range(
    lake: Lake, rivermouth_spark: SparkSession, settings: dict[str, int]
) -> None:
    [setting] = settings
    topic = f"tasks-{setting.replace('_', '-')}"
    lake.topic(topic)
    lake.produce(topic, [(None, bid(i), 0) for i in range(30)])
    source = Source(topics=Topics((topic,)), format="json").model_copy(update=settings)
    options = reader_options({"kafka.bootstrap.servers": lake.servers})

    whole = read_ranges(rivermouth_spark, options, [span(0, 30, topic=topic)])
    options |= task_options(source)
    split = read_ranges(rivermouth_spark, options, [span(0, 30, topic=topic)])

    assert (whole.rdd.getNumPartitions(), split.rdd.getNumPartitions()) == (1, 3)
    assert sorted(row["offset"] for row in split.collect()) == [*range(30)]


@pytest.mark.thorough
@pytest.mark.parametrize("planner", PLANNERS)
def test_batches_are_split_into_tasks_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, planner: str
) -> None:
    tasks: dict[str, list[int]] = {}
    read = Ingest.batch

    def watched(self: Ingest, raw: DataFrame, *batch: Any) -> None:
        tasks.setdefault(self.pipeline.name, []).append(raw.rdd.getNumPartitions())
        read(self, raw, *batch)

    monkeypatch.setattr(Ingest, "batch", watched)
    split = {"whole": {}, "least": {"min_partitions": 3}, "most": {"max_records_per_partition": 10}}
    topics = {name: f"split-{name}-{planner}" for name in split}
    for topic in topics.values():
        lake.topic(topic)
        lake.produce(topic, [(None, bid(i), 0) for i in range(30)])
    own = PLANNERS[planner]
    lake.configure(**{name: append_pipeline(topics[name], **split[name], **own) for name in split})

    heard = lake.run(rivermouth_spark, *split)

    assert [each.error for each in heard.ends] == [None] * 3
    assert tasks == {"whole": [1], "least": [3], "most": [3]}
    for name, topic in topics.items():
        assert batches(heard, name) == [[span(0, 30, topic=topic)]]
        rows = lake.rows(f"bronze.{topic.replace('-', '_')}")
        assert sorted(row["_kafka"]["offset"] for row in rows) == [*range(30)]


@dataclass(frozen=True)
class Uneven:
    """One large partition and nine small ones of so many topics, in records, and their limit."""

    topics: int
    large: int
    small: int
    limit: int


ONE, TEN, MILLIONS = (
    Uneven(1, 3_000, 60, 400),
    Uneven(10, 3_000, 60, 400),
    Uneven(1, 10_000_000, 1_000, 50_000),
)


@pytest.mark.thorough
@pytest.mark.parametrize("uneven", [ONE, TEN, MILLIONS])
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_large_partition_and_nine_small_ones_share_a_limit_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, planner: str, uneven: Uneven
) -> None:
    """They are of one topic, or of ten that one pipeline reads.

    Structured Streaming rounds each share by itself, so a batch may be a few offsets short.
    """
    topics, limit, count, by_driver = uneven.topics, uneven.limit, 10, PLANNERS[planner]
    names = [f"shared-{planner}-{topics}-{limit}-{each}" for each in range(topics)]
    for name in names:
        lake.topic(name, count // topics)
    places = [TopicPartition(name, n) for name in names for n in range(count // topics)]
    sizes = {each: uneven.small if n else uneven.large for n, each in enumerate(places)}
    value = bid(0)
    for place, size in sizes.items():
        lake.produce(place.topic, ((None, value, place.partition) for _ in range(size)))
    settings = {"topics": names, "max_offsets_per_trigger": limit, **by_driver}
    lake.configure(p=append_pipeline(names[0], **settings))

    found = batches(lake.run(rivermouth_spark, "p"))

    position, short = Position(dict.fromkeys(sizes, 0)), 0 if by_driver else count - 1
    for batch in found:
        taken = {each.topic_partition: each.span for each in batch}
        planned = {each.topic_partition: each.span for each in next_ranges(position, sizes, limit)}
        assert taken.keys() == planned.keys(), "one starves"
        assert sum(planned.values()) - short <= sum(taken.values()) <= limit
        near = [each for each in planned if abs(taken[each] - planned[each]) <= min(short, 2)]
        assert len(near) >= len(planned) - min(short, 1), "more than the large one differs"
        position = position.advance(batch)
    assert position.offsets == sizes
    shares = Counter(tuple(sorted({each.span for each in batch})) for batch in found)
    print(f"{len(found)} batches; their shares, and how often: {shares.most_common(9)}")
