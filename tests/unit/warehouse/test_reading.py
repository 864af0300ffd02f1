"""Reading a ledger: from the end of its log, or the whole log for an audit."""

from __future__ import annotations

import pytest

from rivermouth.warehouse.ledger import audit_ledger, read_ledger, read_on
from rivermouth.warehouse.ports import LedgerStore
from tests.builders import TABLE, place, position
from tests.doubles import Driver, WatchedLog, World, a_pipeline, until_done
from tests.memory import MemoryLog

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> World:
    """Version 1 is entry 1, 2 to 9 are entries 2 to 9; all of them are projected."""
    world = World(ends={place(): 8})
    driver = Driver(world).open()
    while driver.batch(1):
        pass
    return world


def test_the_end_of_a_log_is_enough_where_the_newest_entry_says_what_it_was_planned_on(
    world: World,
) -> None:
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert log.read == {8, 9}, "the entry, and the version that it was planned on"
    whole = audit_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert log.read == set(range(10))
    assert recent.newest == whole.newest
    assert recent.history.position == whole.history.position
    assert (recent.table, recent.txn, recent.projected) == (TABLE, 9, 9)
    assert (recent.retention_s, recent.others) == (whole.retention_s, ())
    assert [each.entry.sequence for each in whole.entries] == [*range(1, 10)]


def test_entries_that_the_offsets_table_lacks_are_read_too(world: World) -> None:
    world.offsets.txns["orders"] = 6
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert [each.entry.sequence for each in recent.entries] == [7, 8, 9]
    assert min(log.read) == 6


def test_behind_many_commits_of_others_these_are_read_and_no_more(world: World) -> None:
    for _ in range(2000):
        world.did("WRITE", mode="Append")
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert min(log.read) == 8
    assert recent.history.sequence == 9
    assert recent.history.faults == ()


def test_what_was_committed_since_is_read_on(world: World) -> None:
    store = LedgerStore(MemoryLog(world.log), world.offsets)
    ledger = read_ledger(store, a_pipeline())
    assert read_on(store, a_pipeline(), ledger) is None
    world.ends[place()] += 3
    until_done(world)
    newer = read_on(store, a_pipeline(), ledger)
    assert newer is not None
    assert (newer.history.sequence, newer.txn, newer.projected) == (10, 10, 10)
    assert [each.entry.sequence for each in newer.entries][-1] == 10


def test_a_restore_leads_back_to_the_entry_that_it_left_in_effect(world: World) -> None:
    world.restore(5)
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert min(log.read) == 4, "what entry 5 was planned on"
    assert recent.history.effective == 5


def test_a_restore_that_was_accepted_leads_back_no_further(world: World) -> None:
    world.restore(3)
    Driver(world).ingest.resume("restore")
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    assert min(log.read) == 10, "the RESTORE, on which the accepting entry was planned"
    assert (recent.history.faults, recent.history.position) == ((), position(2))


def test_of_two_restores_the_earlier_target_counts(world: World) -> None:
    world.restore(5)
    world.restore(10)
    world.restore(7)
    log = WatchedLog(world)
    recent = read_ledger(LedgerStore(log, world.offsets), a_pipeline())
    whole = audit_ledger(LedgerStore(MemoryLog(world.log), world.offsets), a_pipeline())
    assert recent.history.effective == whole.history.effective
    assert min(log.read) == 4


def test_the_ledgers_of_others_are_read_only_where_a_pipeline_has_no_entry(world: World) -> None:
    renamed = a_pipeline().model_copy(update={"name": "renamed"})
    store = LedgerStore(MemoryLog(world.log), world.offsets)
    [other] = read_ledger(store, renamed).others
    assert (other.pipeline, other.sequence) == ("orders", 9)
    assert read_ledger(store, a_pipeline()).others == ()


def test_a_table_that_is_not_there_has_no_facts() -> None:
    world = World(ends={place(): 3})
    until_done(world)
    world.log.commits.clear()
    found = read_ledger(LedgerStore(MemoryLog(world.log), world.offsets), a_pipeline())
    assert (found.table, found.txn, found.retention_s) == ("", 0, 0.0)
    assert (found.projected, found.ahead) == (2, True)
