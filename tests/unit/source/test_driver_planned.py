"""Driver-planned batches: what moved in Kafka halts, even where nothing is to be read."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rivermouth.errors import (
    Halt,
    LogTruncated,
    OtherCluster,
    PartitionGone,
    RetentionLost,
    TopicRecreated,
)
from rivermouth.source.driver_planned import DriverPlanned
from tests.builders import place
from tests.doubles import NO_SESSION, Driver, World

pytestmark = pytest.mark.unit

Change = Callable[[World], object]

MOVED: dict[str, tuple[Change, type[Halt], str]] = {
    "the log ends before the position": (
        lambda world: world.ends.update({place(1): 3}),
        LogTruncated,
        "RM416",
    ),
    "a partition is gone": (lambda world: world.ends.pop(place(1)), PartitionGone, "RM407"),
    "the topic was created again, as long as before": (
        lambda world: vars(world).update(topics={"t": "another"}),
        TopicRecreated,
        "RM404",
    ),
    "it was created again and is empty": (
        lambda world: vars(world).update(topics={"t": "another"}, ends={place(0): 0, place(1): 0}),
        TopicRecreated,
        "RM404",
    ),
    "retention passed the position": (
        lambda world: vars(world).update(ends={place(0): 6, place(1): 9}, low={place(1): 5}),
        RetentionLost,
        "RM406",
    ),
    "a partition was added, and its first records are deleted already": (
        lambda world: vars(world).update(ends={**world.ends, place(2): 9}, low={place(2): 5}),
        RetentionLost,
        "RM406",
    ),
    "another cluster": (lambda world: vars(world).update(cluster="other"), OtherCluster, "RM405"),
}


def all_read() -> tuple[World, Driver]:
    """Nothing is left to read of two partitions."""
    world = World(ends={place(0): 6, place(1): 4})
    driver = Driver(world).open()
    driver.batch()
    return world, driver


@pytest.mark.parametrize(("change", "halt", "code"), MOVED.values(), ids=MOVED)
def test_what_moved_halts_a_run_that_has_nothing_to_read(
    change: Change, halt: type[Halt], code: str
) -> None:
    world, driver = all_read()
    commits = len(world.commits)
    change(world)
    planned = DriverPlanned(driver.ingest, driver.stands)
    with pytest.raises(halt) as caught:
        planned.run(NO_SESSION, {}, threading.Event(), endless=False)
    assert caught.value.code == code
    assert len(world.commits) == commits


def test_a_continuous_run_looks_again_at_every_trigger() -> None:
    world, driver = all_read()
    stop = StopsAfter(3, lambda: world.ends.update({place(0): 2}))
    with pytest.raises(LogTruncated):
        DriverPlanned(driver.ingest, driver.stands).run(NO_SESSION, {}, stop, endless=True)
    assert stop.waited == 3


class StopsAfter(threading.Event):
    """An event that is never set; something happens at the wait of that number."""

    def __init__(self, number: int, happens: Callable[[], object]) -> None:
        super().__init__()
        self.waited = 0
        self._number = number
        self._happens = happens

    def wait(self, timeout: float | None = None) -> bool:
        self.waited += 1
        if self.waited == self._number:
            self._happens()
        assert self.waited < self._number + 3, "it idles on"
        return False


def test_where_nothing_moved_a_run_ends_and_writes_nothing() -> None:
    world, driver = all_read()
    world.ends[place(2)] = 0  # a partition that appeared, empty
    commits = len(world.commits)
    planned = DriverPlanned(driver.ingest, driver.stands)
    planned.run(NO_SESSION, {}, threading.Event(), endless=False)
    assert len(world.commits) == commits
