"""Topics by a pattern, on a real broker: they appear and go while the pipeline runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.operate.pace import State
from rivermouth.operate.status import status
from rivermouth.protocol.starts import OVER
from rivermouth.run import feeding
from rivermouth.verification import PipelineProof, Unchecked, verify
from tests.faults.outcomes import refusal, went_well
from tests.lake import PLANNERS, Lake, append_pipeline, bid, continuous
from tests.processes import end_group
from tests.waiting import wait_for, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def matching(pattern: str, **source: Any) -> dict[str, Any]:
    """An append pipeline into ``bronze.shops`` from the topics that match."""
    made = append_pipeline("shops", **source)
    return {**made, "source": {**made["source"], "topics": {"pattern": pattern}}}


def filled(lake: Lake, topic: str, numbers: Iterable[int]) -> None:
    """A new topic with these bids."""
    lake.topic(topic)
    lake.produce(topic, [(None, bid(n), 0) for n in numbers])


def proof(lake: Lake) -> PipelineProof:
    [found] = verify(load(lake.file)).pipelines
    assert found.problems == ()
    return found


def auctions(lake: Lake) -> list[int]:
    return sorted(row["auction"] for row in lake.rows("bronze.shops"))


@pytest.mark.takes_long("driver")
@pytest.mark.parametrize("planner", PLANNERS)
def test_topics_appear_and_go_while_the_pipeline_runs(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, planner: str
) -> None:
    monkeypatch.setattr(feeding, "ASK_NAMES_S", 0.5)
    first, second, other = (f"appear-{planner}-{each}" for each in ("a", "b", "bb"))
    filled(lake, first, [1, 2])
    lake.configure(p=matching(f"appear-{planner}-.", start="latest", **PLANNERS[planner]))
    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: len(heard.opens) == 1)
        lake.produce(first, [(None, bid(3), 0)])
        wait_for_rows(lake.path("bronze.shops"), 1)
        filled(lake, second, [4, 5])
        filled(lake, other, [6])
        wait_for_rows(lake.path("bronze.shops"), 3)
        lake.delete_topic(first)
        wait_for(lambda: heard.opens[-1].vanished == (first,))
        lake.produce(second, [(None, bid(7), 0)])
        wait_for_rows(lake.path("bronze.shops"), 4)

    went_well(heard)
    assert auctions(lake) == [3, 4, 5, 7]
    assert {kind: n for kind, n in proof(lake).left.items() if n} == {Unchecked.DELETED: 1}
    [found] = status(load(lake.file)).pipelines
    assert found.state is State.OK
    assert found.reason == f"no longer in Kafka, read as far as the ledger knew: {first}; {OVER}"


@pytest.mark.thorough
def test_a_topic_that_goes_with_records_that_were_not_read_halts(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    filled(lake, "unread-a", range(10))
    filled(lake, "unread-b", range(10, 20))
    lake.configure(p=matching("unread-.", max_offsets_per_trigger=4))
    with lake.driver("p", spark=rivermouth_spark, failpoints="P9=1*kill") as driver:
        driver.wait()
    left = sum(number not in auctions(lake) for number in range(10))
    lake.delete_topic("unread-a")

    halted = refusal(lake.run(rivermouth_spark, "p"))

    assert halted.code == "RM407"
    assert f"unread-a-0 had {left} offsets more" in str(halted)
    [found] = status(load(lake.file)).pipelines
    assert (found.state, str(found.reason)) == (State.BLOCKED, str(halted))


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize("planner", PLANNERS)
def test_thirty_topics_with_twenty_more_and_five_that_go_through_kills(
    lake: Lake, rivermouth_spark: SparkSession, planner: str
) -> None:
    shops = [f"shop-{planner}-{number:02}" for number in range(50)]
    for number, topic in enumerate(shops[:30]):
        filled(lake, topic, range(10 * number, 10 * number + 10))
    lake.configure(p=matching(f"shop-{planner}-[0-9]{{2}}", **PLANNERS[planner]))
    rows = 300
    for begin in range(30, 50, 5):
        with lake.driver("p", continuous=True) as driver:
            wait_for_rows(lake.path("bronze.shops"), rows)
            if begin > 30:
                lake.delete_topic(shops[begin - 35])
            for number in range(begin, begin + 5):
                filled(lake, shops[number], range(10 * number, 10 * number + 10))
            rows += 50
            if begin % 10:
                wait_for_rows(lake.path("bronze.shops"), rows)
            else:
                time.sleep(begin % 7)
            end_group(driver.pid)
    lake.delete_topic(shops[20])
    lake.delete_topic(shops[21])

    went_well(lake.run(rivermouth_spark, "p"))

    assert auctions(lake) == [*range(500)]
    found = proof(lake)
    assert (found.records, found.left[Unchecked.DELETED]) == (450, 50)
