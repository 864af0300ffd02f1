"""The pace of driver-planned batches: their rate, their minimum, and the time between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.protocol.offsets import unnested
from rivermouth.source.driver_planned import DriverPlanned, pace_of
from tests.builders import place
from tests.doubles import Driver, Offset, World, a_pipeline

pytestmark = pytest.mark.unit

Happens = Callable[[World], object]


def paced(trigger_s: float = 10, **source: Any) -> Pipeline:
    """A pipeline with a trigger, and these settings of its source."""
    pipeline = a_pipeline()
    its = {"source": pipeline.source.model_copy(update=source)}
    return pipeline.model_copy(update={**its, "trigger": timedelta(seconds=trigger_s)})


@dataclass
class Spark:
    """Session and reader in one: a read gives the offsets that it is told, and takes a while."""

    time: Time
    given: dict[str, str] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)

    @property
    def read(self) -> Spark:
        return self

    @property
    def conf(self) -> Mapping[str, str]:
        return {}

    def format(self, name: str) -> Spark:
        return self

    def options(self, **given: str) -> Spark:
        self.given |= given
        return self

    def load(self) -> list[Offset]:
        self.time.now += self.time.batch_s
        self.groups.append(self.given["kafka.group.id"])
        starts, ends = (
            unnested(json.loads(self.given[f"{each}Offsets"])) for each in ("starting", "ending")
        )
        return [(each, offset) for each in starts for offset in range(starts[each], ends[each])]


@dataclass
class Time:
    """A clock, and a stop whose waits move it; after each wait something happens in the world.

    It is set when nothing is left that could happen.
    """

    world: World
    happens: list[Happens] = field(default_factory=list)
    batch_s: float = 0.0
    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float) -> bool:
        assert len(self.waits) < 100, "it idles on"
        self.waits.append(timeout)
        self.now += timeout
        if not self.happens:
            return True
        self.happens.pop(0)(self.world)
        return False


def nothing(world: World) -> None: ...


def more(count: int, partition: int = 0) -> Happens:
    """So many records come."""

    def happens(world: World) -> None:
        world.ends[place(partition)] += count

    return happens


@dataclass
class Bench:
    """A pipeline over a world in memory, and the time in which it is read."""

    pipeline: Pipeline
    world: World
    time: Time
    groups: list[str] = field(default_factory=list)
    """The consumer group of each batch."""

    def read(self, *, endless: bool) -> list[dict[int, int]]:
        """Run; the spans of each batch, by the number of the partition."""
        driver = Driver(self.world, self.pipeline).open()
        planned = DriverPlanned(driver.ingest, driver.stands, lambda: self.time.now)
        spark = Spark(self.time, groups=self.groups)
        planned.run(cast(SparkSession, spark), {}, self.time, endless=endless)
        batches = [{each.partition: each.span for each in c.ranges} for c in driver.heard.commits]
        return [each for each in batches if any(each.values())]


def bench(*ends: int, happens: list[Happens], batch_s: float = 0.0, **source: Any) -> Bench:
    world = World(ends={place(n): end for n, end in enumerate(ends)})
    return Bench(paced(**source), world, Time(world, happens, batch_s))


def test_all_batches_of_an_opening_have_one_consumer_group_and_the_next_opening_another() -> None:
    """Spark keeps consumers by it; with one for each batch it would keep those of all batches."""
    here = bench(120, happens=[nothing], max_offsets_per_trigger=50)
    assert here.read(endless=False) == [{0: 50}, {0: 50}, {0: 20}]
    here.world.ends[place(0)] = 130
    assert here.read(endless=False) == [{0: 10}]
    assert [here.groups.count(each) for each in dict.fromkeys(here.groups)] == [3, 1]


def test_a_run_that_ends_keeps_to_the_rate_and_comes_to_the_end_in_real_time() -> None:
    here = bench(120, 30, happens=[more(9), nothing, nothing], max_rate_per_partition=5)
    assert here.read(endless=False) == [{0: 50, 1: 30}, {0: 50}, {0: 20}]
    assert here.time.waits == [10, 10], "and what came meanwhile is for the next run"
    assert len(here.world.applied()) == 150


def test_a_run_that_ends_without_a_rate_waits_for_nothing() -> None:
    here = bench(25, happens=[], max_offsets_per_trigger=10, min_offsets_per_trigger=10)
    assert here.read(endless=False) == [{0: 10}, {0: 10}, {0: 5}]
    assert here.time.waits == []


def test_a_batch_takes_the_offsets_of_the_time_since_the_last_one() -> None:
    here = bench(400, happens=[nothing] * 3, batch_s=25, max_rate_per_partition=5)
    assert here.read(endless=False) == [{0: 50}, {0: 125}, {0: 125}, {0: 100}]
    assert here.time.waits == [0, 0, 0], "a batch that takes longer is followed at once"


def test_the_next_batch_starts_a_trigger_after_the_start_of_the_last_one() -> None:
    here = bench(4, happens=[more(1), more(1)], batch_s=3)
    assert here.read(endless=True) == [{0: 4}, {0: 1}, {0: 1}]
    assert here.time.waits == [7, 7, 7]


def test_after_an_idle_time_a_batch_takes_the_offsets_of_one_trigger() -> None:
    idle: list[Happens] = [nothing] * 50
    here = bench(50, happens=[*idle, more(900), nothing], max_rate_per_partition=5)
    assert here.read(endless=True) == [{0: 50}, {0: 50}, {0: 50}]


def test_with_a_rate_and_a_short_trigger_batches_start_a_second_apart() -> None:
    here = bench(12, happens=[nothing, nothing], trigger_s=0, max_rate_per_partition=5)
    assert here.read(endless=True) == [{0: 5}, {0: 5}, {0: 2}]
    assert here.time.waits == [1, 1, 1]


def test_without_a_pause_between_triggers_kafka_is_asked_a_hundred_times_a_second() -> None:
    here = bench(4, happens=[nothing, nothing, more(1), nothing], trigger_s=0)
    assert here.read(endless=True) == [{0: 4}, {0: 1}]
    assert here.time.waits == pytest.approx([0.01] * 5)


def test_without_a_pause_a_batch_is_followed_at_once() -> None:
    here = bench(4, happens=[more(1), more(1)], batch_s=3, trigger_s=0)
    assert here.read(endless=True) == [{0: 4}, {0: 1}, {0: 1}]
    assert here.time.waits == [0, 0, 0]


def test_the_limit_of_a_batch_shares_out_what_the_rate_allows() -> None:
    settings = {"max_rate_per_partition": 5, "max_offsets_per_trigger": 40}
    here = bench(60, 500, happens=[], **settings)
    assert here.read(endless=True) == [{0: 20, 1: 20}, {0: 20, 1: 20}, {0: 10, 1: 10}]


def test_a_batch_waits_for_its_minimum_or_until_the_delay_has_passed() -> None:
    settings: dict[str, Any] = {"max_trigger_delay": timedelta(seconds=60)}
    settings["min_offsets_per_trigger"] = 10
    late: list[Happens] = [more(2), *[nothing] * 5]
    here = bench(3, happens=[more(4), more(5), more(1), *late], **settings)
    assert here.read(endless=True) == [{0: 3}, {0: 10}, {0: 2}]
    assert here.time.waits == [10] * 10


def test_the_minimum_is_that_of_each_batch() -> None:
    settings = {"min_offsets_per_trigger": 8, "max_offsets_per_trigger": 10}
    here = bench(25, happens=[nothing, more(3)], **settings)
    assert here.read(endless=True) == [{0: 10}, {0: 10}, {0: 8}]


def test_while_a_batch_waits_for_its_minimum_the_time_counts_for_the_rate() -> None:
    settings = {"min_offsets_per_trigger": 200, "max_rate_per_partition": 5}
    here = bench(0, happens=[more(50)] * 4, **settings)
    assert here.read(endless=True) == [{0: 200}]


def test_each_partition_of_many_has_its_turn_under_a_small_limit() -> None:
    here = bench(*[3] * 5, happens=[], max_offsets_per_trigger=2)
    order = [number for batch in here.read(endless=False) for number in batch]
    assert order[:10] == [0, 1, 2, 3, 0, 4, 1, 2, 3, 4]
    assert here.world.applied() == [(place(p), o) for p in range(5) for o in range(3)]


def test_a_restart_goes_on_with_the_turns() -> None:
    here = bench(*[1] * 3, happens=[], max_offsets_per_trigger=1)
    turns: list[int] = []
    for _ in range(3):
        driver = Driver(here.world, here.pipeline).open()
        planned = DriverPlanned(driver.ingest, driver.stands)
        stop = StopsAfterABatch(driver)
        planned.run(cast(SparkSession, Spark(here.time)), {}, stop, endless=False)
        turns += [each.partition for each in driver.heard.commits[-1].ranges]
    assert turns == [0, 1, 2]


@dataclass
class StopsAfterABatch:
    """A stop that is set by the first commit that moves a position."""

    driver: Driver

    def is_set(self) -> bool:
        return any(span.span for each in self.driver.heard.commits for span in each.ranges)

    def wait(self, timeout: float) -> bool:
        return True


@pytest.mark.parametrize(
    ("trigger_s", "rate", "every_s"), [(10, None, 10), (10, 5, 10), (0.2, None, 0.2), (0.2, 5, 1)]
)
def test_kafka_is_asked_once_in_a_trigger(
    trigger_s: float, rate: int | None, every_s: float
) -> None:
    pipeline = paced(trigger_s, max_rate_per_partition=rate)
    assert pace_of(pipeline, endless=True).every_s == every_s


def test_only_a_run_without_end_waits_for_a_minimum() -> None:
    pipeline = paced(min_offsets_per_trigger=7)
    assert [pace_of(pipeline, endless=each).at_least for each in (True, False)] == [7, 0]
    assert pace_of(paced(), endless=True).at_least == 0
