"""Rates and minimums of a source on a real broker, whoever plans the batches."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermouth.protocol.batches import next_ranges
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.run.ingest import Ingest
from rivermouth.run.report import CommitReport
from tests.builders import span
from tests.faults.outcomes import went_well
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

    went_well(lake.run(rivermouth_spark, *topics, heard=heard))

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


@pytest.mark.thorough
@pytest.mark.parametrize("delay", ["1h", "3s"])
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_batch_waits_for_its_minimum_and_not_for_longer_than_the_delay_whoever_plans(
    lake: Lake, rivermouth_spark: SparkSession, planner: str, delay: str
) -> None:
    """Four records begin a pipeline that then waits for thirty."""
    topic = f"least-{planner}-{delay}"
    lake.topic(topic)
    settings = {"min_offsets_per_trigger": 30, "max_trigger_delay": delay, **PLANNERS[planner]}
    lake.configure(p=append_pipeline(topic, **settings))
    lake.produce(topic, [(None, bid(i), 0) for i in range(4)])

    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: len(batches(heard)) == 1)
        lake.produce(topic, [(None, bid(i), 0) for i in range(10)])
        if delay == "3s":
            wait_for(lambda: batches(heard)[-1][0].until_offset == 14)
            return
        time.sleep(4)  # twenty triggers; four, where there is a rate
        lake.produce(topic, [(None, bid(i), 0) for i in range(20)])
        wait_for(lambda: len(batches(heard)) == 2)

    assert batches(heard) == [[span(0, 4, topic=topic)], [span(4, 34, topic=topic)]]


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

    went_well(heard)
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


@pytest.mark.takes_long("streaming")
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

    heard = went_well(lake.run(rivermouth_spark, *split))

    assert tasks == {"whole": [1], "least": [3], "most": [3]}
    for name, topic in topics.items():
        assert batches(heard, name) == [[span(0, 30, topic=topic)]]
        rows = lake.rows(f"bronze.{topic.replace('-', '_')}")
        assert sorted(row["_kafka"]["offset"] for row in rows) == [*range(30)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("topics", "large", "small", "limit"),
    [(1, 3_000, 60, 400), (10, 3_000, 60, 400), (1, 10_000_000, 1_000, 50_000)],
    ids=["one", "ten", "millions"],
)
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_large_partition_and_nine_small_ones_share_a_limit_whoever_plans(
    lake: Lake,
    rivermouth_spark: SparkSession,
    planner: str,
    topics: int,
    large: int,
    small: int,
    limit: int,
) -> None:
    """They are of one topic, or of ten that one pipeline reads.

    Structured Streaming rounds each share by itself, so a batch may be a few offsets short.
    """
    count, by_driver = 10, PLANNERS[planner]
    names = [f"shared-{planner}-{topics}-{limit}-{each}" for each in range(topics)]
    for name in names:
        lake.topic(name, count // topics)
    places = [TopicPartition(name, n) for name in names for n in range(count // topics)]
    sizes = {each: small if n else large for n, each in enumerate(places)}
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


@pytest.mark.thorough
def test_of_many_partitions_a_batch_reads_few_and_each_has_its_turn(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """Each batch would have two offsets of each partition, and reads ten of every fifth one."""
    many, each = 210, 10
    lake.topic("many", many)
    lake.produce("many", [(None, bid(n), n % many) for n in range(many * each)])
    lake.configure(p=append_pipeline("many", max_offsets_per_trigger=2 * many))

    found = batches(lake.run(rivermouth_spark, "p"))

    assert [[r.span for r in ranges] for ranges in found] == [[each] * (many // 5)] * 5
    kafka = [row["_kafka"] for row in lake.rows("bronze.many")]
    rows = sorted((row["partition"], row["offset"]) for row in kafka)
    assert rows == [(p, o) for p in range(many) for o in range(each)]
