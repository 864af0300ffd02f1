"""The order of the rooms, over in-memory edges: what is written, what is not, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from rivermouth.config import Start
from rivermouth.errors import (
    BatchFailed,
    CommitFailed,
    CommitUnknown,
    Halt,
    IdentityChanged,
    LedgerBroken,
    LogTruncated,
    OffsetGap,
    OffsetOverlap,
    OtherCluster,
    ProjectionFailed,
    RivermouthError,
    Superseded,
    TableUndone,
    TopicRecreated,
)
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.history import PERIODS_KEPT
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.run import committer
from rivermouth.run.ingest import Ingest
from tests.builders import TABLE, TOPICS, place, position, span
from tests.doubles import (
    STEPS,
    Driver,
    Killed,
    World,
    a_pipeline,
    a_world,
    check_exactly_once,
    edges,
    is_bad,
    until_done,
)
from tests.memory import MemoryOffsets

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]


def test_latest_is_decided_once() -> None:
    world = a_world(10)
    pipeline = a_pipeline(start=Start(edge="latest"))
    Driver(world, pipeline).open()
    world.ends[place()] = 30
    assert Driver(world, pipeline).open().stands == position(10)


def test_batches_go_on_from_each_other_and_a_restart_goes_on_from_the_ledger() -> None:
    world = a_world(10, 4)
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    assert until_done(world, lambda _: None).stands == position(6, 4)
    until_done(world)
    check_exactly_once(world)
    assert world.newest.sequence == 4


def test_an_entry_holds_everything_that_a_start_will_ask_for() -> None:
    world = a_world(10)
    until_done(world)
    entry = world.newest
    assert (entry.table, entry.topics, entry.position) == (TABLE, TOPICS, position(10))
    assert entry.config == a_pipeline().identity
    assert entry.rows == (RowCounts(9, 1),)
    driver = Driver(world).open()
    world.ends[place()] = 12
    driver.batch(1)
    assert (world.newest.position, world.newest.ends) == (position(11), position(12))


def test_a_batch_that_changes_no_row_still_commits_an_entry() -> None:
    world = a_world(4)
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(1)  # offset 3 alone, which is poison
    assert is_bad((place(), 3))
    assert world.newest.position == position(4)
    assert world.newest.rows == (RowCounts(0, 1),)
    check_exactly_once(world)


def test_a_partition_added_during_a_run_starts_at_0_even_while_empty() -> None:
    world = a_world(5)
    driver = until_done(world)
    world.ends[place(1)] = 0
    driver.batch()
    assert world.newest.position == position(5, 0)
    world.ends[place(1)] = 3
    driver.batch()
    check_exactly_once(world)


def test_an_empty_batch_writes_nothing() -> None:
    world = a_world(5)
    driver = Driver(world).open()
    driver.batch()
    before = len(world.commits)
    assert driver.batch() == ()
    assert len(world.commits) == before


@pytest.mark.parametrize(
    ("start", "until", "halt"),
    [(4, 5, OffsetGap), (2, 5, OffsetOverlap), (0, 2, OffsetOverlap), (0, 3, OffsetOverlap)],
    ids=["a gap", "an overlap", "long recorded", "the same again"],
)
def test_a_range_that_does_not_follow_on_halts_before_a_write(
    start: int, until: int, halt: type[Halt]
) -> None:
    world = a_world(5)
    driver = Driver(world).open()
    driver.batch(3)
    before = len(world.commits), len(world.quarantine)
    with pytest.raises(halt):
        driver.offer((span(start, until),), position(until))
    assert (len(world.commits), len(world.quarantine)) == before


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["opening", "a batch"])
def test_killed_at_any_step_the_next_start_finds_out_and_nothing_is_lost_or_doubled(
    when: str, step: str
) -> None:
    world = a_world(12, 5)
    driver = Driver(world)
    try:
        driver.open(step if when == "opening" else "")
        driver.batch(4, step if when == "a batch" else "")
    except Killed:
        pass
    else:
        assert step == "answer lost", "the process went on"
    until_done(world)
    check_exactly_once(world)


def test_an_offsets_table_that_was_dropped_is_written_anew_some_entries_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer, "_AT_ONCE", 2)
    world = a_world(5)
    driver = Driver(world).open()
    for _ in range(5):
        driver.batch(1)
    before = list(world.projected)
    world.projected.clear()
    world.offsets.txns.clear()
    written: list[int] = []
    project = MemoryOffsets.project

    def noted(self: MemoryOffsets, entries: Sequence[Recorded]) -> None:
        written.append(len(entries))
        project(self, entries)

    monkeypatch.setattr(MemoryOffsets, "project", noted)
    Driver(world).open()
    assert len(before) > 4
    assert world.projected == before
    assert len(written) >= 3
    assert max(written) == 2


def test_a_write_that_raised_but_stands_counts_and_the_driver_goes_on() -> None:
    world = a_world(5)
    driver = Driver(world).open()
    driver.batch(3, "answer lost")
    assert [each.sequence for each in driver.heard.commits] == [1, 2]
    driver.batch()
    check_exactly_once(world)


@pytest.mark.parametrize(
    ("crash", "error", "stands"),
    [("write failed", BatchFailed, 1), ("log unreadable", CommitUnknown, 2)],
)
def test_what_became_of_a_write_that_failed_the_next_start_finds_out(
    crash: str, error: type[RivermouthError], stands: int
) -> None:
    world = a_world(5)
    with pytest.raises(error):
        Driver(world).open().batch(3, crash)
    assert world.newest.sequence == stands
    until_done(world)
    check_exactly_once(world)


def test_a_write_that_returns_without_a_commit_is_an_error() -> None:
    world = a_world(5)
    driver = Driver(world).open()
    world.deaf = True
    with pytest.raises(CommitFailed, match="without a commit"):
        driver.batch()


@pytest.mark.parametrize(
    ("limit", "ahead"),
    [(2, 1), (3, 1), (5, 1), (3, 3)],
    ids=["another range", "the same range", "a longer one", "it wakes much later"],
)
def test_of_two_drivers_the_slower_stops_and_its_batch_is_not_written(
    limit: int, ahead: int
) -> None:
    world = a_world(9)
    slow, fast = Driver(world).open(), Driver(world).open()
    for _ in range(ahead):
        fast.batch(3)
    before = len(world.commits)
    with pytest.raises(Superseded):
        slow.batch(limit)
    assert len(world.commits) == before
    fast.batch()
    check_exactly_once(world)


def test_a_driver_that_freezes_behind_its_commit_reports_it_and_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world(9)
    frozen = Driver(world).open()
    read = frozen.ingest._edges.at.store.log.commits_after

    def wakes_late(version: int) -> Iterator[CommitRecord]:
        Driver(world).open().batch(3)
        return read(version)

    monkeypatch.setattr(frozen.ingest._edges.at.store.log, "commits_after", wakes_late)
    with pytest.raises(Superseded, match="entry 3 is another driver's"):
        frozen.batch(3)
    assert [each.sequence for each in frozen.heard.commits] == [1, 2]
    until_done(world)
    check_exactly_once(world)


def test_a_long_run_does_not_grow_with_what_it_has_committed() -> None:
    world = a_world(250)
    driver = Driver(world).open()
    while driver.batch(1):
        pass
    committer = driver.ingest._committer
    assert committer is not None
    periods = committer.history.periods
    assert periods is not None
    assert sum(1 for _ in periods.backwards()) <= 2 * PERIODS_KEPT
    world.restore(240)
    world.ends[place()] += 1
    with pytest.raises(LedgerBroken, match="TO VERSION AS OF 25"):
        driver.batch()


def test_a_renamed_pipeline_halts_before_it_ingests_its_topic_again() -> None:
    world = a_world(5)
    until_done(world)
    other = a_pipeline().model_copy(update={"name": "renamed"})
    with pytest.raises(IdentityChanged, match="the pipeline orders has written topic t"):
        Driver(world, other).open()
    world.truncate()
    assert Driver(world, other).open().stands == position(0)


def test_a_renamed_pipeline_with_the_name_of_its_ledger_goes_on_there() -> None:
    world = a_world(5)
    until_done(world)
    world.ends[place()] = 8
    renamed = a_pipeline().model_copy(update={"name": "renamed", "ledger": "orders"})
    opening = Driver(world, renamed).open().heard.opening
    assert (opening.pipeline, opening.behind) == ("renamed", 3)


def test_a_topic_that_another_ledger_of_the_table_knows_is_not_read_again() -> None:
    world = a_world(5)
    until_done(world)
    world.ends[TopicPartition("u", 0)], world.topics = 4, {**world.topics, "u": "topic-u"}
    other = a_pipeline("u").model_copy(update={"name": "other"})
    Driver(world, other).open().batch()
    both = a_pipeline("t", "u")
    with pytest.raises(IdentityChanged, match="the pipeline other has written topic u") as caught:
        Driver(world, both).open()
    assert "ledger: " not in caught.value.remedy, "two ledgers cannot be made one"
    with pytest.raises(IdentityChanged, match="the pipeline orders has written topic t"):
        Driver(world, both.model_copy(update={"name": "both", "ledger": "other"})).open()
    new = TopicPartition("v", 0)
    world.ends[new], world.topics["v"] = 2, "topic-v"
    stands = Driver(world, a_pipeline("t", "v")).open().stands
    assert stands.get(new) == 0, "a topic that no ledger knows is no halt"


def test_a_topic_id_that_is_told_later_is_taken_and_compared_from_then_on() -> None:
    world = a_world(5, 5)
    world.topics = {"t": "AAAAAAAAAAAAAAAAAAAAAA"}
    first = until_done(world).heard.opening
    world.ends[place()], world.topics = 8, {"t": "topic-1"}
    second = until_done(world).heard.opening
    assert (first.without_id, second.without_id) == (("t",), ()), "it is said once"
    world.ends[place()], world.topics = 9, {"t": "AAAAAAAAAAAAAAAAAAAAAA"}
    until_done(world)
    world.topics = {"t": "topic-2"}
    with pytest.raises(TopicRecreated):
        Driver(world).open()


def test_a_log_cut_behind_the_position_or_another_leader_change_nothing() -> None:
    world = a_world(5, 5)
    until_done(world)
    world.cut(place(), 5, 4)
    world.epochs[place(1)] = 3
    world.ends[place(1)] = 8
    until_done(world)
    check_exactly_once(world)


def test_a_log_that_still_has_the_newest_entry_is_enough() -> None:
    world = a_world(5)
    until_done(world).batch()
    world.log.first_version = len(world.commits) - 1
    world.ends[place()] = 9
    until_done(world)
    check_exactly_once(world)


@pytest.mark.parametrize(
    ("change", "halt"),
    [
        (lambda world: setattr(world, "cluster", "other"), OtherCluster),
        (lambda world: setattr(world, "topics", {"t": "other"}), TopicRecreated),
        (lambda world: world.cut(place(), 1, 9), LogTruncated),
    ],
    ids=["another cluster", "a topic created again", "a log that was cut, and has grown"],
)
def test_what_moves_during_a_run_halts_the_next_batch_before_a_write(
    change: Callable[[World], object], halt: type[Halt]
) -> None:
    world = a_world(5)
    driver = Driver(world).open()
    driver.batch(3)
    change(world)
    before = len(world.commits)
    with pytest.raises(halt):
        driver.batch()
    assert len(world.commits) == before


def test_an_undone_table_goes_on_where_it_was_once_it_is_restored() -> None:
    world = a_world(9)
    Driver(world).open().batch(3)
    world.did("TRUNCATE")
    with pytest.raises(TableUndone) as caught:
        Driver(world).open()
    assert caught.value.remedy == (
        "To undo it: RESTORE TABLE ... TO VERSION AS OF 2; "
        "to go on: rivermouth resume CONFIG orders --accept reset"
    )
    world.did("RESTORE", version="2", timestamp=None)
    until_done(world)
    check_exactly_once(world)


def test_a_topic_that_was_left_out_for_a_while_goes_on_where_it_was() -> None:
    world = World(ends={place(): 5, place(0, "u"): 4}, topics={**TOPICS, "u": "topic-u"})
    both, one = a_pipeline("t", "u"), a_pipeline("t")
    Driver(world, both).open().batch()
    world.ends = {place(): 7, place(0, "u"): 6}
    Driver(world, one).open().batch()
    assert world.newest.position.get(place(0, "u")) == 4
    world.topics = {**TOPICS, "u": "created again"}
    with pytest.raises(TopicRecreated):
        Driver(world, both).open()
    world.topics = {**TOPICS, "u": "topic-u"}
    Driver(world, both).open().batch()
    check_exactly_once(world)


@pytest.mark.parametrize(("end", "early"), [(5, False), (6, True)])
def test_the_next_batch_may_be_planned_at_once_where_another_full_one_waits(
    end: int, early: bool
) -> None:
    """And not else: the next batch is to hold what came while this one was read."""
    pipeline = a_pipeline()
    source = pipeline.source.model_copy(update={"max_offsets_per_trigger": 3})
    world, said = a_world(end), list[int]()
    ingest = Driver(world, pipeline.model_copy(update={"source": source})).open().ingest
    opened = len(world.commits)
    rows: Any = [(place(), each) for each in range(3)]
    ingest.batch(rows, (span(0, 3),), lambda: said.append(len(world.commits) - opened))
    assert said == ([0] if early else [])
    assert len(world.commits) == opened + 1


def test_a_commit_is_told_although_an_earlier_one_did_not_come_into_the_offsets_table() -> None:
    class Refusing:
        def put(self, entries: Sequence[Recorded]) -> None:
            del entries
            raise ProjectionFailed("what an earlier entry was refused")

        def flush(self, pipeline: str) -> None:
            del pipeline

    world = a_world(5)
    driver = Driver(world).open()
    heard = driver.heard
    ingest = Ingest(edges(world, driver.crash, heard, None, Refusing()))
    ingest.open()
    driver.ingest = ingest

    with pytest.raises(ProjectionFailed):
        driver.batch()

    assert [each.sequence for each in heard.commits] == [1, 2]


def test_what_waits_to_be_read_is_told_by_the_opening() -> None:
    """A partition that Kafka did not tell of may hold records: it is read."""
    world = a_world(10)
    driver = Driver(world).open()
    assert driver.ingest.waiting(driver.stands)
    driver.batch()

    driver = Driver(world).open()
    assert not driver.ingest.waiting(driver.stands)
    assert driver.ingest.waiting(Position({**driver.stands.offsets, place(7): 0}))
    world.ends[place()] = 11
    assert not driver.ingest.waiting(driver.stands), "a run ends where its topics ended then"
