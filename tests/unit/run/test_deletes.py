"""Accepting DELETEs of others, over edges in memory: killed anywhere, it is accepted once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from rivermouth.config import Pipeline
from rivermouth.errors import LedgerBroken, ResumeRefused, TableUndone
from rivermouth.protocol.accept_deletes import RUNS_IN_ALL
from rivermouth.protocol.commits import CommitRecord, entry_of
from rivermouth.protocol.entry import Deleted, portions
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.run import accepting
from rivermouth.run.accepting import AcceptedDelete
from rivermouth.warehouse.ledger import read_ledger
from rivermouth.warehouse.ports import LedgerStore
from tests.builders import place, span
from tests.doubles import STEPS, Driver, Killed, World, accept_in

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

TOOK = (span(1, 2), span(4, 5))


def erased() -> World:
    """Entries 1 (discovery), 2 and 3 of three offsets each; then a DELETE at version 4."""
    world = World(ends={place(): 6})
    driver = Driver(world).open()
    driver.batch(3)
    driver.batch(3)
    world.did("DELETE", predicate='["(id = 1)"]')
    return world


def accept(
    world: World,
    *versions: int,
    crash: str = "",
    rows: Sequence[OffsetRange] | None = TOOK,
    dry_run: bool = False,
) -> tuple[AcceptedDelete, ...]:
    return accept_in(world, *versions, rows=rows, crash=crash, dry_run=dry_run)


def accepted(world: World) -> list[Deleted]:
    """What the entries in the log say, in order."""
    found = (entry_of(each, "orders") for each in world.commits)
    return [one for each in found if each is not None for one in each.deletes]


def test_the_entry_names_the_rows_and_a_run_goes_on_from_it() -> None:
    world = erased()
    [found] = accept(world, 4)
    assert (found.version, found.rows, found.listed) == (4, 2, True)
    assert found.predicate == '["(id = 1)"]'
    assert world.newest.deletes == (Deleted(4, TOOK),)
    assert world.newest.base == 4
    world.ends[place()] = 9
    Driver(world).open().batch()
    history = world.history
    assert (history.faults, history.sequence, history.position.get(place())) == ((), 5, 9)
    assert [each.entry.sequence for each in world.projected][-2:] == [4, 5]


def test_what_the_offsets_table_lacked_is_there_afterwards() -> None:
    world = erased()
    world.ends[place()] = 9
    with pytest.raises(Killed):
        Driver(world).open().batch(crash="before projection")
    accept(world, 4)
    assert [each.entry.sequence for each in world.projected] == [1, 2, 3, 4, 5]


def test_a_dry_run_writes_nothing() -> None:
    world = erased()
    assert accept(world, 4, dry_run=True)[0].rows == 2
    assert len(world.commits) == 5


@pytest.mark.parametrize("crash", STEPS)
def test_killed_anywhere_the_delete_is_accepted_once(crash: str) -> None:
    world = erased()
    try:
        accept(world, 4, crash=crash)
    except Killed:
        stands = bool(accepted(world))
        if not stands:
            accept(world, 4)
    assert accepted(world) == [Deleted(4, TOOK)]
    with pytest.raises(ResumeRefused, match="version 4 cannot be accepted"):
        accept(world, 4)
    Driver(world).open()
    assert world.projected[-1].entry.sequence == world.history.sequence


@pytest.mark.parametrize("crash", STEPS)
def test_what_one_entry_cannot_list_goes_into_several_also_after_a_kill(
    crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "portions", partial(portions, most=1))
    world = erased()
    try:
        accept(world, 4, crash=crash)
    except Killed:
        if len(accepted(world)) < 2:
            accept(world, 4)
    assert accepted(world) == [Deleted(4, TOOK[:1]), Deleted(4, TOOK[1:])]
    assert world.history.faults == ()


@pytest.mark.parametrize(("kind", "shared"), [("", False), ("identity", False), ("topic", True)])
def test_two_records_share_an_offset_only_where_a_change_was_accepted(
    kind: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot:
        ledger = read_ledger(store, pipeline)
        recorded = ledger.history.recorded
        assert recorded is not None
        told = replace(recorded.entry, accepted=((kind, 1),) if kind else ())
        history = replace(ledger.history, recorded=replace(recorded, entry=told))
        return replace(ledger, history=history)

    monkeypatch.setattr(accepting, "read_ledger", changed)
    asked: list[tuple[int, int, bool]] = []
    accept_in(erased(), 4, rows=TOOK, dry_run=True, asked=asked)
    assert asked == [(4, RUNS_IN_ALL, shared)]


@pytest.mark.parametrize("explode", [False, True])
def test_a_record_of_an_early_entry_may_have_lost_a_part_of_its_rows(explode: bool) -> None:
    world = erased()
    [second] = [each for each in world.commits if _sequence(each) == 2]
    told = {**json.loads(second.user_metadata or ""), "explode": explode}
    early = replace(second, user_metadata=json.dumps(told))
    world.commits = [early if each is second else each for each in world.commits]
    assert not world.newest.explode
    asked: list[tuple[int, int, bool]] = []
    accept_in(world, 4, rows=TOOK, dry_run=True, asked=asked)
    assert asked == [(4, RUNS_IN_ALL, explode)]


def _sequence(record: CommitRecord) -> int:
    entry = entry_of(record, "orders")
    return 0 if entry is None else entry.sequence


def test_a_halt_comes_before_anything_is_accepted() -> None:
    world = erased()
    world.restore(3)
    with pytest.raises(ResumeRefused, match="version 4"):
        accept(world, 4)  # all entries are in effect; the DELETE is not
    world.restore(2)
    with pytest.raises(TableUndone):
        accept(world, 4)
    assert accepted(world) == []


def test_a_restore_while_the_rows_are_compared_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = erased()

    def meanwhile(found: Sequence[Deleted]) -> object:
        world.restore(2)
        return portions(found)

    monkeypatch.setattr(accepting, "portions", meanwhile)
    with pytest.raises(LedgerBroken, match="rolled back"):
        accept(world, 4)


def test_where_nobody_can_tell_the_rows_and_their_number_nothing_is_written() -> None:
    world = erased()
    with pytest.raises(ResumeRefused, match="version 4"):
        accept(world, 4, rows=None)
    assert accepted(world) == []
