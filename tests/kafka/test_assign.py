"""Assigned partitions on a real broker: whoever plans the batches, the others are left alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rivermouth
from rivermouth.config import load, unresolved
from rivermouth.kafka.groups import ConfiguredGroups
from rivermouth.operate.pace import State
from rivermouth.operate.status import status
from rivermouth.operate.topic import topic
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.verification import verify
from tests.faults.outcomes import refusal, went_well
from tests.kafka.test_mirror import Settled
from tests.lake import Lake, append_pipeline, bid

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PLANNED = {"max_rate_per_partition": 100_000}
"""Structured Streaming knows no such rate, so the driver plans the batches."""


def reading(partitions: Mapping[str, Iterable[int]], **source: Any) -> dict[str, Any]:
    """An append pipeline into ``bronze.parts`` from these partitions."""
    made = append_pipeline("parts", **source)
    assigned = {name: [*numbers] for name, numbers in partitions.items()}
    return {**made, "source": {**made["source"], "topics": {"assign": assigned}}}


def fill(lake: Lake, name: str, begin: int, partitions: Iterable[int] = range(4)) -> None:
    """Ten more bids for each partition: from 100 times its number plus ``begin`` on."""
    numbers = ((each, 100 * each + begin + n) for each in partitions for n in range(10))
    lake.produce(name, [(None, bid(number), each) for each, number in numbers])


def auctions(lake: Lake) -> list[int]:
    return sorted(row["auction"] for row in lake.rows("bronze.parts"))


def all_proved(lake: Lake) -> None:
    found = verify(load(lake.file), strict=True)
    assert [each.problems for each in found.pipelines] == [()] * len(found.pipelines)
    assert found.ok


def test_pipelines_share_out_the_partitions_of_a_topic_for_one_table(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("parts-a", 4)
    fill(lake, "parts-a", 0)
    group: dict[str, Any] = {"mirror_group": "parts-a"}
    lake.configure(
        p=reading({"parts-a": [2, 0]}, **group), q=reading({"parts-a": [1]}, **PLANNED, **group)
    )
    went_well(lake.run(rivermouth_spark, "p", "q"))
    assert auctions(lake) == [100 * each + n for each in (0, 1, 2) for n in range(10)]
    all_proved(lake)

    config = load(lake.file)
    found = topic(config, "parts-a")
    stands = {
        each.name: {one.partition: one.lag for one in each.partitions} for each in found.readers
    }
    assert stands == {"p": {0: 0, 2: 0}, "q": {1: 0}}
    assert [each.latest for each in found.partitions] == [10] * 4
    pipelines = status(config).pipelines
    assert [(each.state, each.lag_messages) for each in pipelines] == [(State.OK, 0)] * 2
    places = [TopicPartition("parts-a", each) for each in range(4)]
    groups = Settled(ConfiguredGroups(config, unresolved))
    assert [*groups.read("parts-a", places).values()] == [10, 10, 10, None]
    ranges = [one for each in rivermouth.ranges(config, "q") for one in each.ranges if one.span]
    assert [str(each) for each in ranges] == ["parts-a-1[0,10)"]

    lake.configure(p=reading({"parts-a": [0, 5, 7]}))
    halted = refusal(lake.run(rivermouth_spark, "p"))
    assert (halted.code, halted.found) == ("RM417", "no parts-a-5, parts-a-7")
    assert "Write assign: {parts-a: [0]}" in str(halted)


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize(
    "own",
    [
        pytest.param({}, id="streaming"),
        pytest.param(PLANNED, id="planned", marks=pytest.mark.thorough),
    ],
)
def test_what_is_assigned_later_begins_where_start_says_and_what_is_taken_out_stays(
    lake: Lake, rivermouth_spark: SparkSession, own: Mapping[str, Any]
) -> None:
    name = "parts-c" if own else "parts-b"
    lake.topic(name, 4)
    assigned, start = [[0, 1], [1, 3], [0, 1, 3]], "earliest"
    for begin, partitions in enumerate(assigned):
        fill(lake, name, 20 * begin)
        lake.configure(p=reading({name: partitions}, start=start, **own))
        if begin == 1:
            with lake.driver("p", spark=rivermouth_spark, failpoints="P7=1*kill") as driver:
                driver.wait()
        else:
            went_well(lake.run(rivermouth_spark, "p"))
        start = "latest"
        fill(lake, name, 20 * begin + 10)
        went_well(lake.run(rivermouth_spark, "p"))
        all_proved(lake)

    assert auctions(lake) == [*range(60), *range(100, 160), *range(330, 360)]
