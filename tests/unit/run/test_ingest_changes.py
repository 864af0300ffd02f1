"""What an operator may accept of a changed source; over in-memory edges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rivermouth.config import Pipeline
from rivermouth.errors import Halt, ResumeRefused
from rivermouth.protocol.accept_changes import Offsets, ResumePlan
from rivermouth.protocol.entry import Change, Entry, Move
from rivermouth.protocol.offsets import Position
from tests.builders import place, position, replayed
from tests.doubles import STEPS, Driver, Killed, World, a_pipeline

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

KEYED = a_pipeline(keys=("id",))
WITH_KEY = KEYED.model_copy(update={"source": KEYED.source.model_copy(update={"key": "string"})})


def a_world(pipeline: Pipeline | None = None) -> World:
    """Six records in each of two partitions; three of each were read, and the ends were known."""
    world = World(ends={place(): 6, place(1): 6})
    Driver(world, pipeline).open().batch(3)
    return world


def created_again(world: World) -> None:
    world.topics = {"t": "topic-2"}
    world.ends = {place(): 9, place(1): 5}
    world.low = {place(1): 2}


def moved_away(world: World) -> None:
    world.cluster, world.topics = "cluster-2", {"t": "topic-9"}
    world.ends = {place(): 40, place(1): 4}


def lost_a_partition(world: World) -> None:
    del world.ends[place(1)]


def cut(world: World) -> None:
    world.cut(place(), 1, grown=7)


def cut_short(world: World) -> None:
    world.ends[place(1)] = 2


CHANGES: dict[str, tuple[Callable[[World], None], str, str, Offsets | None, Position]] = {
    "topic": (created_again, "RM404", "topic", None, position(0, 2)),
    "cluster, start": (moved_away, "RM405", "cluster", "start", position(0, 0)),
    "cluster, same": (moved_away, "RM405", "cluster", "same", position(3, 3)),
    "cluster, file": (moved_away, "RM405", "cluster", position(33, 3), position(33, 3)),
    "partitions": (lost_a_partition, "RM407", "partitions", None, position(3)),
    "truncation": (cut, "RM416", "truncation", None, position(1, 3)),
    "short": (cut_short, "RM416", "truncation", None, position(3, 2)),
}
EVERY = pytest.mark.parametrize("name", CHANGES)


def resume(
    world: World,
    accept: str,
    offsets: Offsets | None = None,
    crash: str = "",
    pipeline: Pipeline | None = None,
) -> Position:
    driver = Driver(world, pipeline)
    driver.crash.step = crash
    return driver.ingest.resume(accept, offsets)


def check_goes_on(world: World, at: Position) -> None:
    """The ledger is whole, for a start as for an audit, and what is due is read from there on."""
    before = len(world.rows)
    Driver(world).open(audit=True).batch()
    assert world.history.faults == ()
    assert world.history.position == Position(world.ends)
    due = sum(end - (at.get(each) or 0) for each, end in world.ends.items())
    bad = len(world.quarantine)
    assert len(world.rows) - before <= due <= len(world.rows) - before + bad
    assert world.projected[-1].entry.sequence == world.newest.sequence


@EVERY
def test_a_halt_names_its_way_on_and_the_pipeline_goes_on_once_it_is_accepted(name: str) -> None:
    change, code, accept, offsets, at = CHANGES[name]
    world = a_world()
    change(world)
    with pytest.raises(Halt, match=f"{code}.*resume CONFIG orders --accept {accept}"):
        Driver(world).open()

    assert resume(world, accept, offsets) == at

    entry = world.newest
    assert entry.changes is not None
    assert entry.accepted == ((accept, 3),)
    assert entry.position == at
    check_goes_on(world, at)
    assert world.newest.accepted == ((accept, 3),), "told for ever"


@EVERY
@pytest.mark.parametrize("step", STEPS)
def test_killed_while_accepting_an_operator_simply_does_it_again(name: str, step: str) -> None:
    change, _, accept, offsets, at = CHANGES[name]
    world = a_world()
    change(world)
    try:
        resume(world, accept, offsets, crash=step)
    except Killed:
        if world.newest.changes is None:
            resume(world, accept, offsets)
    assert [each.changes is None for each in entries(world)] == [True, True, False]
    check_goes_on(world, at)


def test_a_partition_whose_end_was_seen_and_that_was_never_read_may_be_another_one() -> None:
    world = a_world()
    cut(world)
    world.ends[place(2)] = 4
    resume(world, "truncation")
    created_again(world)
    world.ends[place(2)] = 3
    assert resume(world, "topic") == position(0, 2, 0)
    check_goes_on(world, position(0, 2, 0))


def entries(world: World) -> list[Entry]:
    found = [replayed(world.commits[: n + 1]).newest for n in range(len(world.commits))]
    return list({each.sequence: each for each in found if each is not None}.values())


@EVERY
@pytest.mark.parametrize("accept", ["topic", "cluster", "partitions", "truncation", "identity"])
def test_nothing_but_what_is_found_can_be_accepted(name: str, accept: str) -> None:
    change, _, right, offsets, _ = CHANGES[name]
    world = a_world()
    change(world)
    before = len(world.commits)
    for asked in {accept, f"{right},identity"} - {right}:
        with pytest.raises(ResumeRefused, match=f"--accept {right}"):
            resume(world, asked, offsets)
    with pytest.raises(ResumeRefused):
        resume(a_world(), accept)
    assert len(world.commits) == before


def test_several_changes_are_accepted_in_one_go_and_each_is_asked_for() -> None:
    world = a_world()
    created_again(world)
    del world.ends[place(1)]
    with pytest.raises(ResumeRefused, match="--accept partitions,topic"):
        resume(world, "topic")
    assert resume(world, "topic,partitions") == position(0)
    changes = world.newest.changes
    assert changes is not None
    assert changes.kinds == (Change.PARTITIONS, Change.TOPIC)
    assert changes.moved == (Move(place(), 3, 0), Move(place(1), 3, None))


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        (None, "--offsets same, start or FILE"),
        ("same", "cannot continue at 3"),
        (position(3), "not those of all partitions"),
        (position(3, 3, 3), "not those of all partitions"),
        (position(3, 5), "cannot continue at 5"),
    ],
)
def test_where_another_cluster_continues_must_be_told_and_must_exist(
    offsets: Offsets | None, why: str
) -> None:
    world = a_world()
    moved_away(world)
    world.ends[place(1)] = 2
    with pytest.raises(ResumeRefused, match=why):
        resume(world, "cluster", offsets)


def test_offsets_are_refused_where_the_cluster_is_the_same() -> None:
    world = a_world()
    created_again(world)
    with pytest.raises(ResumeRefused, match="no --offsets"):
        resume(world, "topic", "start")


def test_a_form_of_keys_that_was_added_is_accepted_and_nothing_moves() -> None:
    world = a_world(KEYED)
    with pytest.raises(Halt, match=r"the setting key.*resume CONFIG orders --accept identity"):
        Driver(world, WITH_KEY).open()
    assert resume(world, "identity", pipeline=WITH_KEY) == position(3, 3)
    entry = world.newest
    assert entry.changes is not None
    assert (dict(entry.changes.settings), entry.config["key"]) == ({"key": None}, "string")
    Driver(world, WITH_KEY).open().batch()
    assert world.history.faults == ()
    with pytest.raises(Halt, match="the setting key"):
        Driver(world, KEYED).open()


def test_other_keys_cannot_be_accepted_and_the_halt_offers_nothing() -> None:
    world = a_world(KEYED)
    other = a_pipeline()
    with pytest.raises(Halt, match="new pipeline name and table"):
        Driver(world, other).open()
    with pytest.raises(ResumeRefused, match="a change of keys cannot be accepted"):
        resume(world, "identity", pipeline=other)


def test_a_plan_tells_what_may_be_lost_or_doubled_and_writes_nothing_if_refused() -> None:
    world = a_world()
    created_again(world)
    plans: list[ResumePlan] = []
    before = len(world.commits)

    def refuse(plan: ResumePlan) -> bool:
        plans.append(plan)
        return False

    at = Driver(world).ingest.resume("topic", None, refuse)

    assert (at, len(world.commits)) == (position(0, 2), before)
    [plan] = plans
    assert plan.lines == (
        "t was the topic topic-1 and is topic-2",
        "t-0 stood at 3 and continues at 0",
        "t-0: up to 3 offsets after 3, which were there at the last commit, were never read and"
        " may be lost",
        "t-0: 9 offsets are read from there; records among them that were read before are read"
        " twice",
        "t-1 stood at 3 and continues at 2",
        "t-1: up to 3 offsets after 3, which were there at the last commit, were never read and"
        " may be lost",
        "t-1: 3 offsets are read from there; records among them that were read before are read"
        " twice",
    )
    assert plan.as_dict()["changes"]["topics"] == {"t": "topic-1"}


def test_a_restore_to_before_an_accepted_change_is_not_gone_on_from() -> None:
    """The offsets that would be read again mean other records by now."""
    world = a_world()
    created_again(world)
    resume(world, "topic")
    Driver(world).open().batch()
    world.restore(2)
    with pytest.raises(ResumeRefused, match="entry 3 accepted a change of the source"):
        resume(world, "restore")
    world.truncate()
    assert resume(world, "reset") == position(0, 2)
    assert world.newest.accepted == (), "nothing is left of the old topic"
    check_goes_on(world, position(0, 2))


def test_a_restore_that_came_into_the_acceptance_is_noticed() -> None:
    world = a_world()
    created_again(world)
    world.restore(1)
    with pytest.raises(Halt, match="RM411"):
        resume(world, "topic")
