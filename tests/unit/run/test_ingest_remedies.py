"""What a pipeline gets over by itself, and what an operator may accept; over in-memory edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rivermouth.config import OnDataLoss, Start
from rivermouth.errors import (
    CommitConflict,
    IdentityChanged,
    LedgerBroken,
    LedgerTrimmed,
    LogTruncated,
    ResumeRefused,
    RetentionLost,
    TableUndone,
)
from rivermouth.protocol.entry import Accepted
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.run.ingest import Ingest
from tests.builders import TOPICS, place, position, span
from tests.doubles import (
    STEPS,
    Driver,
    Killed,
    WatchedLog,
    World,
    a_pipeline,
    a_world,
    check_exactly_once,
    edges,
    until_done,
)

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

RECORDING = a_pipeline(on_data_loss=OnDataLoss.RECORD)


def resume(world: World, accept: str, crash: str = "") -> Position:
    driver = Driver(world)
    driver.crash.step = crash
    return driver.ingest.resume(accept)


# Accepting a RESTORE


def restored(to: int = 2) -> World:
    """Entries 1 (discovery), 2 and 3 of three offsets each; then back to version ``to``."""
    world = a_world(6)
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(to)
    world.ends[place()] = 9
    return world


def test_an_accepted_restore_reads_again_what_it_undid() -> None:
    world = restored()
    assert resume(world, "restore") == position(3)
    assert world.newest.sequence == 4
    assert world.newest.accepts == Accepted("restore", 4, 2)
    until_done(world)
    check_exactly_once(world)


def test_accepting_reads_no_more_of_the_log_than_a_start() -> None:
    world = a_world(30)
    driver = Driver(world).open()
    while driver.batch(1):
        pass
    world.restore(29)
    log, given = WatchedLog(world), edges(world, driver.crash, driver.heard)
    store = replace(given.at.store, log=log)
    ingest = Ingest(replace(given, at=replace(given.at, store=store)))
    with pytest.raises(TableUndone):
        ingest.open()
    by_start = {*log.read}
    log.read.clear()
    ingest.resume("restore")
    assert log.read == by_start == {28, 29, 30, 31, 32}, "from what entry 29 was planned on"


@pytest.mark.parametrize("to", [0, 1, 2])
@pytest.mark.parametrize("step", ["", *STEPS])
def test_killed_while_resuming_an_operator_simply_does_it_again(to: int, step: str) -> None:
    world = restored(to)
    try:
        resume(world, "restore", crash=step)
    except Killed:
        if world.history.faults:
            resume(world, "restore")
    until_done(world)
    check_exactly_once(world)


def test_a_restore_that_came_into_a_batch_is_torn_and_heals_through_one_more_restore() -> None:
    world = a_world(9)
    driver = Driver(world).open()
    driver.batch(3)
    world.restore(1)
    with pytest.raises(LedgerBroken, match="written over commits that were rolled back"):
        driver.batch(3)
    with pytest.raises(LedgerBroken, match="written over commits that were rolled back"):
        resume(world, "restore")
    world.restore(3)
    assert resume(world, "restore") == position(0)
    until_done(world)
    check_exactly_once(world)


def test_a_restore_to_an_emptied_table_goes_on_where_the_partitions_once_began() -> None:
    """Not where the configuration says: ``latest`` is another offset by now."""
    latest = a_pipeline(start=Start(edge="latest"))
    world = a_world(10)
    driver = Driver(world, latest).open()
    world.ends[place()] = 13
    driver.batch()
    world.ends[place()] = 16
    world.truncate()
    with pytest.raises(LedgerBroken, match="TO VERSION AS OF 3"):
        driver.batch()
    world.restore(3)
    world.ends[place()] = 50
    with pytest.raises(TableUndone, match="--accept restore"):
        Driver(world, latest).open()
    assert Driver(world, latest).ingest.resume("restore") == position(10)
    driver = Driver(world, latest).open()
    driver.batch()
    assert driver.stands == position(50)


def test_a_log_that_was_cut_above_what_a_restore_left_is_read_on() -> None:
    """Nothing of what the table holds now was lost: position 3, the log cut at 4."""
    world = restored()
    world.cut(place(), 4, grown=9)
    assert resume(world, "restore") == position(3)
    until_done(world)
    check_exactly_once(world)


def test_a_log_that_was_cut_below_what_a_restore_left_still_halts() -> None:
    world = restored()
    world.cut(place(), 1, grown=9)
    with pytest.raises(TableUndone):
        Driver(world).open()
    assert resume(world, "restore") == position(3)
    with pytest.raises(LogTruncated, match="cut at 1"):
        Driver(world).open()
    assert resume(world, "truncation") == position(1)
    until_done(world)
    assert world.history.position == Position(world.ends)


def test_a_restore_to_before_a_reset_brings_back_what_was_accepted_before_it() -> None:
    """Rows of the former topic are in the table again: ``verify`` has to know."""
    world = a_world(6)
    Driver(world).open().batch(3)
    world.topics = dict.fromkeys(TOPICS, "other")
    resume(world, "topic")
    until_done(world)
    restored = len(world.commits) - 1
    world.truncate()
    resume(world, "reset")
    after_reset = world.newest
    assert after_reset.accepted == ()
    world.restore(restored)
    resume(world, "restore")
    assert world.newest.accepted == (("topic", 3),)


def test_a_truncated_table_starts_over_where_the_configuration_says() -> None:
    world = a_world(6)
    Driver(world).open().batch()
    world.truncate()
    world.low[place()] = 2
    assert resume(world, "reset") == position(2)
    until_done(world)
    check_exactly_once(world)


def test_a_table_made_anew_goes_on_counting_where_the_offsets_table_stands() -> None:
    world = a_world(6)
    until_done(world)
    world.commits, world.rows, world.log.table_id = world.commits[:1], [], "table-2"
    world.stands, world.kept = set(), {}
    assert resume(world, "reset") == position(0)
    assert world.newest.sequence == 3
    until_done(world)
    check_exactly_once(world)


@pytest.mark.parametrize(
    ("undo", "accept"),
    [
        (lambda w: None, "restore"),
        (lambda w: None, "reset"),
        (lambda w: w.restore(2), "reset"),
        (lambda w: w.truncate(), "restore"),
        (lambda w: w.did("RESTORE", version=None, timestamp="2026-01-01"), "restore"),
    ],
    ids=["nothing", "nothing ", "a restore", "a truncate", "a restore to a point in time"],
)
def test_only_what_happened_can_be_accepted(undo: Callable[[World], None], accept: str) -> None:
    world = a_world(6)
    Driver(world).open().batch(3)
    undo(world)
    before = len(world.commits)
    with pytest.raises(ResumeRefused):
        resume(world, accept)
    assert len(world.commits) == before


@pytest.mark.parametrize("source", ["topic", "cluster"])
def test_what_was_read_of_a_former_topic_is_not_gone_on_from(source: str) -> None:
    world = restored()
    _another(world, source)
    with pytest.raises(ResumeRefused, match=r"another source.*TRUNCATE, then: .* --accept reset"):
        resume(world, "restore")


@pytest.mark.parametrize("emptied_first", [True, False])
@pytest.mark.parametrize("source", ["topic", "cluster"])
def test_an_emptied_table_starts_over_with_whatever_source_there_is(
    source: str, emptied_first: bool
) -> None:
    world = a_world(6)
    until_done(world)
    if emptied_first:
        world.truncate()
    _another(world, source)
    if not emptied_first:
        world.truncate()
    with pytest.raises(TableUndone, match="--accept reset"):
        Driver(world).open()
    assert resume(world, "reset") == position(0)
    until_done(world)
    check_exactly_once(world)
    world.restore(2)
    with pytest.raises(ResumeRefused, match="another source"):
        resume(world, "restore")


def test_a_partition_begins_where_it_began_in_the_topic_that_there_is_now() -> None:
    """Topic u was added, created again, and read anew from its end at that time."""
    both = a_pipeline("t", "u", start=Start(edge="latest"))
    u = TopicPartition("u", 0)
    world = World(ends={place(): 6, u: 9}, topics={"t": "t-1", "u": "u-1"})
    until_done(world)
    version = len(world.commits) - 1
    Driver(world, both).open().batch()
    world.truncate()
    world.topics = {"t": "t-1", "u": "u-2"}
    world.ends[u] = 4
    Driver(world, both).ingest.resume("reset")
    world.ends[u] = 20
    Driver(world, both).open().batch()
    world.restore(version)
    assert Driver(world, both).ingest.resume("restore") == Position({place(): 6, u: 4})


def test_a_restore_to_an_emptied_table_forgets_a_former_topic() -> None:
    world = a_world(6)
    until_done(world)
    _another(world, "topic")
    resume(world, "topic")
    until_done(world)
    world.truncate()
    emptied = len(world.commits) - 1
    resume(world, "reset")
    until_done(world)
    world.restore(emptied)
    assert resume(world, "restore") == position(0)
    assert world.newest.accepted == ()
    until_done(world)
    check_exactly_once(world)


def test_rows_of_another_mode_from_before_a_reset_are_not_gone_on_from() -> None:
    upsert = a_pipeline(keys=("id",))
    world = a_world(6)
    Driver(world, upsert).open().batch()
    version = len(world.commits) - 1
    world.truncate()
    resume(world, "reset")
    until_done(world)
    world.restore(version)
    with pytest.raises(ResumeRefused, match=r"before a change of (keys|mode)"):
        resume(world, "restore")


def test_after_a_reset_nothing_of_a_former_source_is_recorded() -> None:
    world = World(ends={place(): 6, TopicPartition("u", 0): 9}, topics={"t": "t-1", "u": "u-1"})
    Driver(world, a_pipeline("t", "u")).open().batch()
    world.truncate()
    world.cluster, world.topics = "other", {"t": "t-2", "u": "u-2"}
    driver = Driver(world)
    driver.ingest.resume("reset")
    assert world.newest.topics == {"t": "t-2"}
    Driver(world, a_pipeline("t", "u")).open().batch()
    assert world.newest.topics == {"t": "t-2", "u": "u-2"}


def _another(world: World, source: str) -> None:
    """Another source under the same names, with four records."""
    world.topics = dict.fromkeys(TOPICS, "other")
    world.cluster = "other" if source == "cluster" else world.cluster
    world.ends[place()] = 4


def test_an_accepted_restore_accepts_no_other_keys() -> None:
    world = restored()
    before = len(world.commits)
    with pytest.raises(IdentityChanged, match="keys"):
        Driver(world, a_pipeline(keys=("id",))).ingest.resume("restore")
    assert len(world.commits) == before


def test_a_zombie_does_not_write_over_an_accepted_restore() -> None:
    world = a_world(9)
    zombie = Driver(world).open()
    zombie.batch(3)
    world.restore(1)
    resume(world, "restore")
    with pytest.raises(Exception, match="another driver"):
        zombie.batch(3)
    until_done(world)
    check_exactly_once(world)


# Conflicts with commits of others


def test_a_conflict_is_retried_with_the_same_ranges_and_sequence() -> None:
    world = a_world(6)
    driver = Driver(world).open()
    driver.crash.times = 4
    driver.batch(3, crash="conflicts")
    assert (world.newest.sequence, world.newest.ranges) == (2, (span(0, 3),))
    driver.batch()
    check_exactly_once(world)


def test_a_conflict_that_does_not_end_fails_the_batch_and_leaves_no_trace() -> None:
    world = a_world(6)
    driver = Driver(world).open()
    driver.crash.times = 5
    with pytest.raises(CommitConflict):
        driver.batch(3, crash="conflicts")
    assert world.newest.sequence == 1
    until_done(world)
    check_exactly_once(world)


# Log clean-up


def trimmed(world: World) -> World:
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1
    return world


def test_what_was_undone_is_noticed_even_if_clean_up_has_taken_all_entries() -> None:
    world = a_world(6)
    Driver(world).open().batch()
    trimmed(world).truncate()
    with pytest.raises(TableUndone, match="found none"):
        Driver(world).open()
    assert resume(world, "reset") == position(0)
    until_done(world)
    check_exactly_once(world)


def test_a_restore_among_what_clean_up_has_left_goes_on_from_the_offsets_table() -> None:
    world = a_world(6)
    Driver(world).open().batch(3)
    trimmed(world)
    Driver(world).open().batch()
    world.restore(world.log.first_version)
    with pytest.raises(TableUndone, match="found entry 2"):
        Driver(world).open()


def test_a_restore_to_where_nothing_stood_starts_over_if_nobody_knows_where_it_began() -> None:
    world = a_world(6)
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.log.first_version = len(world.commits) - 1
    world.truncate()
    empty = len(world.commits) - 1
    assert resume(world, "reset") == position(0)
    until_done(world)
    world.restore(empty)
    assert resume(world, "restore") == position(0)
    until_done(world)
    check_exactly_once(world)


def test_a_restore_to_a_version_that_clean_up_has_taken_is_never_taken_for_harmless() -> None:
    world = a_world(6)
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.restore(2)
    world.did("OPTIMIZE")
    world.log.first_version = 4
    with pytest.raises(TableUndone, match="nobody knows which"):
        Driver(world).open()


def test_a_torn_entry_is_remembered_when_clean_up_has_taken_what_tore_it() -> None:
    world = a_world(9)
    driver = Driver(world).open()
    driver.batch(3)
    world.restore(1)
    with pytest.raises(LedgerBroken, match="written over commits that were rolled back"):
        driver.batch(3)
    with pytest.raises(LedgerBroken, match="written over commits that were rolled back"):
        Driver(world).open()
    world.log.first_version = len(world.commits) - 1
    with pytest.raises(LedgerTrimmed, match="commits were undone"):
        Driver(world).open()
    world.truncate()
    assert resume(world, "reset") == position(0)
    until_done(world)
    check_exactly_once(world)


def test_a_halt_that_somebody_answered_by_undoing_it_is_forgotten() -> None:
    world = a_world(6)
    until_done(world)
    world.restore(1)
    with pytest.raises(TableUndone):
        Driver(world).open()
    world.restore(2)
    Driver(world).open()
    assert world.newest.sequence == 3, "written anew, above what was noted"
    trimmed(world)
    Driver(world).open()


# Loss


def test_a_loss_that_is_to_be_recorded_is_an_entry_of_its_own_and_no_gap() -> None:
    world = a_world(6, 4)
    Driver(world).open().batch(3)
    world.low[place()] = 5
    with pytest.raises(RetentionLost):
        Driver(world).open()
    driver = Driver(world, RECORDING).open()
    assert world.newest.lost == (span(3, 5),)
    assert driver.heard.opening.lost == (span(3, 5),)
    driver.batch()
    assert world.history.faults == ()
    assert [n for each, n in world.applied() if each == place()] == [0, 1, 2, 5]


def test_a_topic_that_became_shorter_is_no_loss_that_can_be_recorded() -> None:
    world = a_world(6)
    until_done(world)
    world.ends[place()] = 4
    with pytest.raises(LogTruncated):
        Driver(world, RECORDING).open()
