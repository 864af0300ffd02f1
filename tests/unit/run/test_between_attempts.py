"""What happens in a pause between two attempts, and guards that wait for no other answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import repeat
from typing import Any

import pytest

from rivermouth.config import Retry
from rivermouth.errors import (
    BatchFailed,
    CommitConflict,
    CommitUnknown,
    KafkaRefused,
    Passing,
    ResumeRefused,
    Superseded,
    TableUndone,
    TopicRecreated,
)
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import Anchor, Position, TopicPartition
from rivermouth.warehouse.ports import Attempts
from tests.builders import PIPELINE, place, position
from tests.doubles import (
    Driver,
    MemoryKafka,
    World,
    a_pipeline,
    check_exactly_once,
    until_done,
)

pytestmark = pytest.mark.unit


def paused(world: World, pause: Callable[[float], bool | None]) -> Driver:
    """A driver whose next write conflicts once, and what happens meanwhile."""
    driver = Driver(world)
    attempts = Attempts(lambda: repeat(0.0, 4), pause)
    _with(driver, attempts=attempts)
    driver.crash.times = 1
    return driver


def test_a_topic_that_is_recreated_in_a_pause_is_noticed_before_the_next_attempt() -> None:
    world = World(ends={place(): 5})
    driver = paused(world, lambda _: setattr(world, "topics", {"t": "another"})).open()
    before = len(world.commits)
    with pytest.raises(TopicRecreated):
        driver.batch(crash="conflicts")
    assert len(world.commits) == before, "no record of the other topic was committed"


def test_a_restore_in_the_pause_of_a_resume_is_not_accepted_with_the_first_one() -> None:
    world = World(ends={place(): 9})
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(2)
    operator = paused(world, lambda _: world.restore(1))
    operator.crash.step = "conflicts"
    with pytest.raises(TableUndone):
        operator.ingest.resume("restore")
    assert Driver(world).ingest.resume("restore") == position(0)
    until_done(world)
    assert world.history.faults == ()
    assert world.history.position == Position(world.ends)


@pytest.mark.parametrize("when", ["before the answer", "in the pause"])
def test_what_is_undone_no_more_is_not_accepted_and_no_record_comes_twice(when: str) -> None:
    world = World(ends={place(): 9})
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(2)
    operator = paused(world, lambda _: world.restore(3) if when == "in the pause" else None)
    operator.crash.step = "conflicts"
    if when == "before the answer":
        _meets(operator, lambda: world.restore(3))
    with pytest.raises(ResumeRefused, match="is undone"):
        operator.ingest.resume("restore")
    until_done(world)
    assert world.applied() == [(place(), offset) for offset in range(9)]


def test_a_rollback_that_another_driver_accepts_in_the_pause_overtakes_the_operator() -> None:
    world = World(ends={place(): 9})
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(2)

    def meanwhile(_: float) -> None:
        Driver(world).ingest.resume("restore")

    operator = paused(world, meanwhile)
    operator.crash.step = "conflicts"
    with pytest.raises(Superseded):
        operator.ingest.resume("restore")
    assert world.history.faults == ()


@pytest.mark.parametrize(
    ("happens", "expected"),
    [(lambda world: world.did("OPTIMIZE"), [0, 0, 3, 0, 0]), (lambda _: None, [1, 2, 3, 4, 5])],
    ids=["others commit", "nobody does"],
)
def test_where_others_have_committed_some_tries_in_a_row_have_no_pause_in_between(
    happens: Callable[[World], None], expected: list[float]
) -> None:
    world, heard = World(ends={place(): 9}), list[float]()
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(2)
    operator = Driver(world)
    _with(operator, attempts=Attempts(lambda: iter([1.0, 2, 3, 4, 5]), heard.append))
    operator.crash.step, operator.crash.times = "conflicts", 5
    _meets(operator, lambda: happens(world))
    operator.ingest.resume("restore")
    assert heard == expected
    assert world.history.faults == ()


@pytest.mark.parametrize("limit", [2, 3, 9], ids=["less", "the same range", "more"])
def test_a_commit_of_the_same_run_that_comes_late_is_no_rivals(limit: int) -> None:
    world = World(ends={place(): 9})
    late = Driver(world).open()
    with pytest.raises(BatchFailed):
        late.batch(3, crash="late")
    again, rival = Driver(world), Driver(world).open()
    again.goes_on_after(late)
    again.open()
    world.arrive()
    with pytest.raises(CommitUnknown, match="came late") as caught:
        again.batch(limit)
    assert caught.value.passes is Passing.YES
    with pytest.raises(Superseded):
        rival.batch(limit)
    until_done(world)
    check_exactly_once(world)


def _meets(operator: Driver, happening: Callable[[], None]) -> None:
    """Let something happen at the first write of an operator, which conflicts with it."""
    writes = operator.ingest._edges.at.writes

    def and_record(plan: CommitPlan) -> None:
        if operator.crash.times:
            happening()
        writes.record(plan)

    _with(operator, writes=replace(writes, record=and_record))


def _with(driver: Driver, **edges: Any) -> None:
    given = driver.ingest._edges
    driver.ingest._edges = replace(given, at=replace(given.at, **edges))


def test_once_a_run_is_to_stop_nothing_is_tried_again() -> None:
    stop = threading.Event()
    attempts = Attempts.by(Retry.model_validate({"for": timedelta(minutes=1)}), stop)
    numbers = attempts.each()
    assert next(numbers) == 0
    stop.set()
    assert list(numbers) == []


def test_a_conflict_is_told_where_the_run_is_to_stop() -> None:
    driver = paused(World(ends={place(): 5}), lambda _: True).open()
    with pytest.raises(CommitConflict):
        driver.batch(crash="conflicts")


def test_a_topic_that_was_taken_out_and_deleted_stops_no_batch() -> None:
    world = World(ends={place(): 5, place(topic="u"): 5}, topics={"t": "topic-1", "u": "topic-2"})
    Driver(world, a_pipeline("t", "u")).open().batch()
    del world.ends[place(topic="u")]
    world.topics = {"t": "topic-1"}
    world.ends[place()] = 9
    Driver(world, a_pipeline("t")).open().batch()
    newest = world.history.position
    assert (newest.get(place()), newest.get(place(topic="u"))) == (9, 5), "its position is kept"


def test_a_rollback_is_noted_and_halts_where_kafka_refuses_to_tell_of_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(
        self: MemoryKafka, anchors: Mapping[TopicPartition, Anchor]
    ) -> dict[TopicPartition, int]:
        if anchors:
            raise KafkaRefused("no right to read")
        return {}

    world = World(ends={place(): 9})
    driver = Driver(world).open()
    driver.batch(3)
    world.restore(1)
    world.epochs[place()] = 1
    monkeypatch.setattr(MemoryKafka, "truncated_logs", refused)
    with pytest.raises(TableUndone):
        Driver(world).open()
    assert world.offsets.noted == {PIPELINE: 3}
