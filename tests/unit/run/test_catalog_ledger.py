"""A ledger in a catalog, which tells no ``txn``: what is clean-up's work, and what is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rivermouth.errors import CommitUnknown, LedgerTrimmed, OffsetsTableAhead
from rivermouth.protocol.commits import CommitRecord
from rivermouth.protocol.offsets import Position
from tests.builders import place, position
from tests.doubles import Driver, World, until_done

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]


def a_world() -> World:
    """Ten records, read; then five more."""
    world = World(ends={place(): 10})
    until_done(world)
    world.ends[place()] = 15
    return world


def made_anew(world: World, *operations: str) -> None:
    """Drop the table and make another one, to which others do something."""
    world.log.table_id, world.rows, world.stands, world.kept = "table-2", [], set(), {}
    world.commits = [CommitRecord(0, 0, "CREATE TABLE", {}, {}, None)]
    for each in operations:
        world.did(each)


@pytest.mark.parametrize(
    "operations", [(), ("WRITE",) * 40], ids=["empty", "longer than the first one was"]
)
def test_a_table_made_anew_is_never_taken_for_clean_up(operations: tuple[str, ...]) -> None:
    world = a_world()
    made_anew(world, *operations)
    before = len(world.commits)
    for _ in range(2):
        with pytest.raises(OffsetsTableAhead, match="knows commits") as caught:
            Driver(world).open()
        assert "--accept reset" in caught.value.remedy
    assert len(world.commits) == before, "nothing was written"
    assert Driver(world).ingest.resume("reset") == position(0)
    until_done(world)
    assert world.applied() == [(place(), n) for n in range(15)]
    assert world.history.faults == ()
    assert world.history.position == Position(world.ends)


def test_a_table_made_anew_whose_own_log_was_cleaned_up_is_not_taken_for_ours_either() -> None:
    """The version that the offsets table knows can be read: it is of somebody else."""
    world = a_world()
    made_anew(world, "WRITE", "WRITE", "WRITE")
    world.log.first_version = 2
    with pytest.raises(OffsetsTableAhead):
        Driver(world).open()


def test_without_entries_and_without_an_offsets_table_nothing_is_read_again() -> None:
    world = a_world()
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1
    world.projected.clear()
    world.offsets.txns.clear()
    before = len(world.commits)
    for _ in range(2):
        with pytest.raises(LedgerTrimmed, match="log clean-up took every entry"):
            Driver(world).open()
    assert len(world.commits) == before


def test_of_a_write_and_a_log_that_both_failed_both_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    driver = Driver(world).open()
    read = driver.ingest._edges.at.store.log.commits_after

    def fail(version: int) -> Iterator[CommitRecord]:
        driver.crash.step = "log unreadable"
        return read(version)

    monkeypatch.setattr(driver.ingest._edges.at.store.log, "commits_after", fail)
    with pytest.raises(CommitUnknown) as caught:
        driver.batch(crash="write failed")
    assert "WriteFailed" in caught.value.found
    assert "a commit cannot be read" in caught.value.found
