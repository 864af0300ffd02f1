"""Assigned partitions: only these are read, and the others of their topics are nobody's here."""

from __future__ import annotations

import pytest

from rivermouth.config import OnDataLoss, Pipeline, Start
from rivermouth.errors import (
    IdentityChanged,
    PartitionGone,
    ResumeRefused,
    RetentionLost,
    StartUnknown,
)
from rivermouth.protocol.offsets import Position
from tests.builders import TOPIC, place
from tests.doubles import Driver, World, a_pipeline

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

ZERO, ONE, TWO = place(0), place(1), place(2)


def a_world() -> World:
    """One topic of three partitions."""
    return World(ends={ZERO: 5, ONE: 6, TWO: 7})


def assigned(*partitions: int, start: Start | None = None, name: str = "orders") -> Pipeline:
    made = a_pipeline(assigned={TOPIC: partitions}, start=start)
    return made.model_copy(update={"name": name})


def read(world: World, pipeline: Pipeline, limit: int = 1 << 30) -> Driver:
    driver = Driver(world, pipeline).open()
    driver.batch(limit)
    return driver


def test_only_the_assigned_partitions_are_read() -> None:
    world = a_world()
    assert read(world, assigned(2, 0)).stands == Position({ZERO: 5, TWO: 7})
    assert {each for each, _ in world.applied()} == {ZERO, TWO}
    world.ends[place(3)] = 4
    again = read(world, assigned(2, 0))
    assert (again.stands.get(place(3)), again.heard.opening.behind) == (None, 0)


def test_partitions_that_do_not_exist_are_listed_together_with_what_to_write() -> None:
    world = a_world()
    with pytest.raises(StartUnknown) as halt:
        Driver(world, assigned(0, 3, 2, 5)).open()
    assert "t-3, t-5" in halt.value.found
    assert halt.value.remedy == "Write assign: {t: [0, 2]}"
    assert world.kept == {}


def test_a_partition_that_was_read_and_is_gone_halts() -> None:
    world = a_world()
    read(world, assigned(0, 2))
    del world.ends[TWO]
    with pytest.raises(PartitionGone, match="a recorded partition is gone"):
        Driver(world, assigned(0, 2)).open()
    assert Driver(world, assigned(0)).open().stands == Position({ZERO: 5})


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, 2),
        (Start("latest"), 6),
        (Start(offsets={TOPIC: {0: 1, 1: 4}}), 4),
    ],
    ids=["earliest", "latest", "an offset"],
)
def test_a_partition_that_comes_to_be_assigned_starts_where_start_says(
    start: Start | None, expected: int
) -> None:
    world = a_world()
    read(world, assigned(0))
    world.low[ONE] = 2  # nobody has lost that: it was not to be read
    driver = Driver(world, assigned(0, 1, start=start)).open()
    assert driver.stands == Position({ZERO: 5, ONE: expected})
    assert Driver(world, assigned(0, 1)).open().stands == driver.stands, "decided once"


def test_a_start_that_does_not_name_the_new_partition_says_what_to_write() -> None:
    world = a_world()
    read(world, assigned(0, start=Start(offsets={TOPIC: {0: 1}})))
    with pytest.raises(StartUnknown) as halt:
        Driver(world, assigned(0, 1, start=Start(offsets={TOPIC: {0: 1}}))).open()
    assert "t-1 is not named" in halt.value.found
    assert halt.value.remedy == "Write start: {t: {0: 1, 1: earliest}}"


def test_a_partition_that_is_taken_out_keeps_its_position() -> None:
    world = a_world()
    read(world, assigned(0, 1), limit=3)
    read(world, assigned(1))
    world.low[ZERO] = 2
    driver = read(world, assigned(0, 1))
    assert driver.stands == Position({ZERO: 5, ONE: 6})
    assert len(world.applied()) == len(set(world.applied())) == 11
    read(world, assigned(1))
    world.ends[ZERO], world.low[ZERO] = 20, 9
    assert Driver(world, assigned(1)).open().stands == Position({ONE: 6})
    with pytest.raises(RetentionLost):
        Driver(world, assigned(0, 1)).open()


def test_a_list_reads_what_was_not_assigned_from_start_and_what_is_added_later_from_zero() -> None:
    world = a_world()
    read(world, assigned(0))
    world.low |= {ONE: 2, TWO: 3}
    driver = read(world, a_pipeline())
    assert driver.stands == Position({ZERO: 5, ONE: 6, TWO: 7})
    world.ends[place(3)], world.low[place(3)] = 9, 4
    with pytest.raises(RetentionLost, match=r"\[0,4\) were deleted"):
        Driver(world, a_pipeline()).open()
    recorded = Driver(world, a_pipeline(on_data_loss=OnDataLoss.RECORD)).open()
    assert recorded.stands.get(place(3)) == 4


def test_a_partition_added_to_a_whole_topic_is_due_from_zero_where_it_is_assigned() -> None:
    world = a_world()
    read(world, a_pipeline())
    world.ends[place(3)] = 4
    driver = Driver(world, assigned(3, start=Start("latest"))).open()
    assert driver.stands == Position({place(3): 0})


def test_two_pipelines_read_their_own_partitions_into_one_table() -> None:
    world = a_world()
    for name, own in (("orders", (0, 1)), ("rest", (2,)), ("orders", (0, 1)), ("rest", (2,))):
        read(world, assigned(*own, name=name))
    assert len(world.applied()) == len(set(world.applied())) == 18
    for pipeline in (
        assigned(1, 2, name="rest"),
        assigned(1, name="new"),
        assigned(0, 1, 2),
        a_pipeline(),
        a_pipeline().model_copy(update={"name": "new"}),
    ):
        with pytest.raises(IdentityChanged, match=r"has written topic t into this table"):
            Driver(world, pipeline).open()


def test_of_a_topic_that_another_pipeline_reads_as_a_whole_no_partition_is_taken() -> None:
    world = a_world()
    read(world, a_pipeline())
    world.ends[place(3)] = 4
    with pytest.raises(IdentityChanged):
        Driver(world, assigned(3, name="new")).open()


def test_a_topic_that_was_created_again_does_not_go_on_at_the_former_offset_of_any_partition() -> (
    None
):
    world = a_world()
    read(world, assigned(0, 1))
    read(world, assigned(0))
    world.topics = {TOPIC: "another"}
    world.ends = {ZERO: 9, ONE: 9, TWO: 9}
    driver = Driver(world, assigned(0))
    with pytest.raises(ResumeRefused, match="topic is not what there is to accept") as refused:
        driver.ingest.resume("topic")
    assert refused.value.expected == "--accept partitions,topic"
    driver.ingest.resume("partitions,topic")
    assert Driver(world, assigned(0, 1)).open().stands == Position({ZERO: 0, ONE: 0})


def test_a_restore_goes_on_with_the_partitions_that_are_assigned() -> None:
    world = a_world()
    read(world, assigned(0, 1), limit=2)
    version = max(world.kept)
    read(world, assigned(0, 1))
    world.restore(version)
    Driver(world, assigned(0, 1)).ingest.resume("restore")
    read(world, assigned(0, 1))
    assert len(world.applied()) == len(set(world.applied())) == 11


def test_that_a_topic_is_read_whole_is_recorded_at_once() -> None:
    """Else a partition that is added before the next record would start where ``start`` says."""
    world = a_world()
    read(world, assigned(0, 1, 2))
    late = Start("latest")
    Driver(world, a_pipeline(start=late)).open()
    world.ends[place(3)] = 4
    assert Driver(world, a_pipeline(start=late)).open().stands.get(place(3)) == 0
    before = len(world.commits)
    Driver(world, a_pipeline(start=late)).open()
    assert len(world.commits) == before, "once"
