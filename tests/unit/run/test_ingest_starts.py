"""Where topics start that the ledger does not know, also behind what an operator accepted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from rivermouth.config import OnMissingTime, Pipeline, Start
from rivermouth.errors import IdentityChanged, TableUndone, TopicRecreated
from rivermouth.protocol.accept_changes import START
from rivermouth.protocol.offsets import Position
from tests.builders import place
from tests.doubles import Driver, World, a_pipeline

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

OLD, NEW = place(), place(0, "b")
AT_40 = datetime.fromtimestamp(40, timezone.utc)
"""The double has a record for every second: the one of this time has the offset 40."""


def with_new_topic() -> Pipeline:
    """The pipeline that reads ``b``, too, from a time on."""
    start = Start(offsets={"b": AT_40})
    return a_pipeline("t", "b", start=start, on_missing_time=OnMissingTime.LATEST)


def a_world() -> World:
    """The old topic is read; the new one has 100 records."""
    world = World(ends={OLD: 5}, topics={"t": "topic-1", "b": "topic-b"})
    driver = Driver(world).open()
    driver.batch(2)
    driver.batch()
    world.ends[NEW] = 100
    return world


def created_again(world: World) -> str:
    world.topics = {**world.topics, "t": "topic-2"}
    return "topic"


def restored(world: World) -> str:
    world.restore(2)
    return "restore"


def emptied(world: World) -> str:
    world.truncate()
    return "reset"


def test_a_topic_that_is_added_starts_at_its_time() -> None:
    assert Driver(a_world(), with_new_topic()).open().stands.get(NEW) == 40


@pytest.mark.parametrize("happen", [created_again, restored, emptied])
def test_what_an_operator_accepts_first_moves_no_start(happen: Callable[[World], str]) -> None:
    """The entry that accepts it tells the id of the new topic, and no position."""
    world = a_world()
    accept = happen(world)
    with pytest.raises((TopicRecreated, TableUndone)):
        Driver(world, with_new_topic()).open()
    Driver(world, with_new_topic()).ingest.resume(accept)
    assert Driver(world, with_new_topic()).open().stands.get(NEW) == 40


def test_in_another_cluster_a_pipeline_may_start_at_a_time() -> None:
    world = a_world()
    world.cluster = "another"
    went_on = Driver(world, with_new_topic()).ingest.resume("cluster", START)
    assert went_on == Position({OLD: 0, NEW: 40})


@pytest.mark.parametrize("happen", [created_again, restored])
def test_what_an_operator_accepts_lets_no_pipeline_read_the_topic_of_another(
    happen: Callable[[World], str],
) -> None:
    """It would be in the table twice: another pipeline has read ``b`` into it."""
    world = World(ends={OLD: 5, NEW: 7}, topics={"t": "topic-1", "b": "topic-b"})
    other = a_pipeline("b").model_copy(update={"name": "other"})
    Driver(world, other).open().batch()
    driver = Driver(world).open()
    driver.batch(2)
    if happen is restored:
        version = len(world.commits) - 1
        driver.batch()
        world.restore(version)
        accept = "restore"
    else:
        accept = happen(world)
    both = a_pipeline("t", "b")
    Driver(world, both).ingest.resume(accept)
    with pytest.raises(IdentityChanged, match="other has written topic b into this table"):
        Driver(world, both).open()
