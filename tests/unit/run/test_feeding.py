"""Who plans the batches of a pipeline, and whose turn it is while one waits."""

from __future__ import annotations

import threading

import pytest

from rivermouth.config.platforms import PLATFORMS, Platform
from rivermouth.run.feeding import least_of_each, planned_by_driver
from rivermouth.run.supervision import GivingWay
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit

STREAMING = {"local", "cluster", "classic"}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
@pytest.mark.parametrize(
    ("source", "always"),
    [
        ({}, False),
        ({"min_offsets_per_trigger": 5, "min_partitions": 2}, False),
        ({"max_rate_per_partition": 5}, True),
    ],
)
def test_the_driver_plans_where_structured_streaming_cannot(
    platform: Platform, source: dict[str, int], always: bool
) -> None:
    plain = a_pipeline()
    pipeline = plain.model_copy(update={"source": plain.source.model_copy(update=source)})
    assert planned_by_driver(pipeline, platform) is (always or platform.name not in STREAMING)


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
@pytest.mark.parametrize(
    ("partitions", "limit", "least"),
    [
        pytest.param(2_000, 500_000, 2_000, id="so many that each would give little"),
        pytest.param(2_000, 4_000_000, 1, id="a batch is large enough for all of them"),
        pytest.param(200, 5, 1, id="few partitions, and a small batch"),
    ],
)
def test_partitions_take_turns_on_one_machine_where_a_batch_has_little_of_each(
    platform: Platform, partitions: int, limit: int, least: int
) -> None:
    plain = a_pipeline()
    source = plain.source.model_copy(update={"max_offsets_per_trigger": limit})
    pipeline = plain.model_copy(update={"source": source})
    here = least if platform.name == "local" else 1
    assert least_of_each(pipeline, platform, partitions) == here


def test_while_a_pipeline_waits_another_one_has_its_turn() -> None:
    turns, seen = threading.Semaphore(1), list[bool]()

    class Watched(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            seen.append(turns.acquire(blocking=False))
            turns.release()
            return self.is_set()

    stop = Watched()
    with turns:
        waits = GivingWay(stop, turns)
        assert (waits.is_set(), waits.wait(1)) == (False, False)
        stop.set()
        assert (waits.is_set(), waits.wait(1)) == (True, True)
        assert not turns.acquire(blocking=False), "the turn is its own again"
    assert seen == [True, True]
