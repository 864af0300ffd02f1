"""Kafka is looked at while a batch is read, and its commit waits for what Kafka says."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rivermouth.errors import KafkaUnreachable, LogTruncated, OffsetGap, TopicRecreated
from rivermouth.protocol.offsets import Position
from rivermouth.run.steps import concurrently, leader_changed
from tests.builders import place, span
from tests.doubles import Driver, World, until_done

pytestmark = pytest.mark.unit


class Fault(Exception):
    pass


def failing() -> None:
    raise Fault


def test_what_is_looked_for_is_waited_for() -> None:
    go = threading.Event()

    def look() -> int:
        go.wait()
        return 7

    with concurrently(look) as seen:
        go.set()
        assert seen() == 7


def test_a_block_ends_when_the_look_has_ended() -> None:
    ended = threading.Event()
    with concurrently(ended.set):
        pass
    assert ended.is_set()


def test_what_kafka_says_comes_before_what_the_reading_says() -> None:
    with pytest.raises(Fault), concurrently(failing):
        raise ValueError("the topic cannot be read")


def test_a_reading_that_fails_by_itself_says_why() -> None:
    with pytest.raises(ValueError, match="by itself"), concurrently(lambda: None):
        raise ValueError("by itself")


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ({}, {}, False),
        ({0: 3, 1: 3}, {0: 3, 1: 3}, False),
        ({0: 3, 1: 3}, {0: 3, 1: 4}, True),
        ({0: 3}, {0: 3, 1: 4}, True),  # it was not known before
        ({0: 3, 1: 3}, {0: 3}, False),  # it is not told
        ({1: 3, 2: 3}, {1: 3, 2: 4}, False),  # it is not read
    ],
)
def test_a_leader_has_changed_where_a_range_has_another_epoch(
    before: dict[int, int], now: dict[int, int], changed: bool
) -> None:
    ranges = [span(0, 5), span(0, 5, 1)]
    told = [{place(n): epoch for n, epoch in each.items()} for each in (before, now)]
    assert leader_changed(ranges, *told) is changed


# Over edges in memory


def a_world(end: int = 5) -> World:
    return World(ends={place(): end}, staging_reads=True)


def late(world: World, change: Callable[[], object]) -> None:
    """Let the change happen while the next batch is read, and before Kafka answers."""
    done = threading.Event()

    def amid() -> None:
        change()
        world.asked = lambda: None
        done.set()

    world.amid.append(amid)
    world.asked = done.wait


def recreate(world: World) -> None:
    world.topics = {"t": "another"}


def test_nothing_is_committed_of_a_topic_that_was_created_again_while_it_was_read() -> None:
    world = a_world()
    driver = Driver(world).open()
    before = len(world.commits)
    late(world, lambda: recreate(world))
    with pytest.raises(TopicRecreated):
        driver.batch()
    assert len(world.commits) == before
    assert world.rows == []


def test_nothing_is_committed_of_a_log_that_was_cut_below_the_position() -> None:
    world = a_world()
    driver = until_done(world)
    world.ends[place()] = 9
    late(world, lambda: world.cut(place(), 3, 9))
    before = len(world.commits)
    with pytest.raises(LogTruncated):
        driver.batch()
    assert len(world.commits) == before


def test_a_batch_is_read_again_where_a_leader_changed_meanwhile_and_names_the_new_one() -> None:
    world = a_world()
    driver = until_done(world)
    world.ends[place()], world.reads = 9, 0

    def change() -> None:
        world.epochs[place()] = 4

    late(world, change)
    driver.batch()
    assert world.reads == 2
    assert world.newest.epochs == {place(): 4}
    assert world.history.position == Position(world.ends)
    world.ends[place()] = 12
    driver.batch()
    assert world.reads == 3


def test_a_log_that_is_cut_inside_the_batch_while_it_is_read_is_noticed_afterwards() -> None:
    world = a_world()
    driver = until_done(world)
    world.ends[place()] = 9
    late(world, lambda: world.cut(place(), 7, 2))
    driver.batch()
    assert world.newest.epochs == {place(): 1}, "all of it was read again, from the new log"
    world.cut(place(), 8, 5)
    with pytest.raises(LogTruncated):
        driver.batch()


def test_a_log_of_an_added_partition_that_is_cut_while_it_is_first_read_is_read_again() -> None:
    """No epoch of it is known before: the first one that is told may be that after the cut."""
    world = a_world()
    driver = until_done(world)
    world.ends[place(1)], world.reads = 5, 0
    late(world, lambda: world.cut(place(1), 2, 7))
    driver.offer((span(0, 5, 1),), Position({place(): 5, place(1): 5}))
    assert world.reads == 2
    assert world.newest.epochs[place(1)] == 1
    world.cut(place(1), 3, 9)
    with pytest.raises(LogTruncated):
        driver.batch()


def test_the_entry_tells_the_ends_that_kafka_told_beside_the_reading() -> None:
    world = a_world()
    driver = Driver(world).open()

    def more() -> None:
        world.ends[place()] = 11

    late(world, more)
    driver.offer((span(0, 5),), Position({place(): 5}))
    assert world.newest.ends == Position({place(): 11})


def test_where_kafka_does_not_answer_nothing_is_committed_and_a_later_batch_is() -> None:
    world = a_world()
    driver = Driver(world).open()
    before = len(world.commits)

    def silent() -> None:
        world.asked = lambda: None
        raise KafkaUnreachable("no answer in time")

    world.asked = silent
    with pytest.raises(KafkaUnreachable):
        driver.batch()
    assert len(world.commits) == before
    until_done(world)
    assert world.applied() == [(place(), n) for n in range(5)]


def test_kafka_is_asked_once_for_each_attempt_at_a_batch() -> None:
    world = a_world()
    driver = Driver(world).open()
    asked: list[int] = []
    world.asked = lambda: asked.append(1)
    driver.batch()
    assert len(asked) == 1
    world.ends[place()] = 9
    driver.crash.times = 2
    driver.batch(crash="conflicts")
    assert len(asked) == 1 + 3


def test_ranges_that_do_not_follow_on_halt_after_a_look_that_may_say_why() -> None:
    world = a_world()
    driver = Driver(world).open()
    gap, after = (span(2, 5),), Position({place(): 5})
    with pytest.raises(OffsetGap):
        driver.offer(gap, after)
    recreate(world)
    with pytest.raises(TopicRecreated):
        driver.offer(gap, after)
