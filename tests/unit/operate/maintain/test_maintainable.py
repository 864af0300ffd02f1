"""What keeps maintenance off a table: what would halt a start, and a table that is quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from rivermouth.config import Pipeline
from rivermouth.errors import (
    Halt,
    IdentityChanged,
    LedgerBroken,
    LedgerTrimmed,
    OffsetsTableAhead,
    TableReplaced,
    TableUndone,
)
from rivermouth.operate.maintain import TableEntries, maintainable
from rivermouth.protocol.commits import CommitRecord
from rivermouth.warehouse.ports import LedgerLog, LedgerStore
from tests.builders import PIPELINE, entry_after, place, record_of_entry, span
from tests.doubles import Driver, World, a_pipeline, until_done
from tests.memory import MemoryLog

pytestmark = pytest.mark.unit

DAY = 86400.0
OTHER = "invoices"


def store(world: World, log: LedgerLog | None = None) -> LedgerStore:
    return LedgerStore(log or MemoryLog(world.log), world.offsets)


def ledger(world: World, pipeline: Pipeline | None = None) -> tuple[Pipeline, LedgerStore]:
    return pipeline or a_pipeline(), store(world)


def other() -> Pipeline:
    return a_pipeline().model_copy(update={"name": OTHER})


def a_world() -> World:
    """Entries 1 and 2 of a pipeline."""
    world = World(ends={place(0): 6})
    until_done(world)
    return world


def looked(world: World, days: float = 0) -> TableEntries:
    return maintainable([ledger(world)], days * DAY)


def test_a_table_may_be_maintained_and_the_commits_of_its_entries_are_told() -> None:
    world = a_world()
    found = looked(world)
    assert found.quiet == ""
    assert list(found.commits) == [PIPELINE]
    assert [*found.commits[PIPELINE]] == [2], "the end of the log, as a start reads it"
    assert {*found.commits[PIPELINE].values()} < world.stands


def test_a_table_without_an_entry_has_nothing_to_lose() -> None:
    assert looked(World(), days=99) == TableEntries({PIPELINE: {}})


Change = Callable[[World], object]


@pytest.mark.parametrize(
    ("name", "change", "halt"),
    [
        ("emptied", lambda w: w.truncate(), TableUndone),
        ("restored", lambda w: w.restore(1), TableUndone),
        ("the end is lost", lambda w: w.commits.pop(), OffsetsTableAhead),
        ("another table", lambda w: setattr(w.log, "table_id", "other"), TableReplaced),
    ],
)
def test_what_would_halt_a_start_is_raised_and_nothing_is_noted(
    name: str, change: Change, halt: type[Halt]
) -> None:
    world = a_world()
    change(world)
    commits = len(world.commits)
    with pytest.raises(halt):
        looked(world)
    assert (len(world.commits), world.offsets.noted) == (commits, {}), name


def test_a_changed_setting_that_gives_identity_is_raised() -> None:
    with pytest.raises(IdentityChanged):
        maintainable([ledger(a_world(), a_pipeline(keys=("id",)))], 0)


def test_a_halt_that_was_noted_is_raised_when_clean_up_has_taken_what_it_was_for() -> None:
    world = a_world()
    world.restore(1)
    with pytest.raises(TableUndone):
        Driver(world).open()
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1
    with pytest.raises(LedgerTrimmed, match="a start halted"):
        looked(world)


def test_what_halts_one_pipeline_keeps_maintenance_off_for_all_that_write_the_table() -> None:
    world = a_world()
    born = entry_after(None, span(0, 0, topic="u"), pipeline=OTHER)
    world.commits.append(record_of_entry(len(world.commits), born))
    both = [ledger(world), ledger(world, other())]
    with pytest.raises(IdentityChanged) as caught:  # its settings are none of a real pipeline
        maintainable(both, 0)
    assert caught.value.where.startswith(OTHER)


def test_a_table_whose_entries_are_all_of_ledgers_that_are_not_configured_is_left_alone() -> None:
    renamed = a_pipeline(pattern=".*").model_copy(update={"name": OTHER})
    for pipeline in (other(), renamed):
        found = maintainable([ledger(a_world(), pipeline)], 0)
        assert found.quiet == f"its entries are of the ledger {PIPELINE}, see RM408"


def two_pipelines(newest_at_day: float) -> World:
    """A pipeline's two entries at day 0, and the other's only one."""
    world = a_world()
    born = entry_after(None, span(0, 0, topic="u"), pipeline=OTHER)
    record = record_of_entry(len(world.commits), replace(born, config=other().identity))
    at = replace(record, timestamp_ms=int(newest_at_day * DAY * 1000))
    world.commits.append(at)
    return world


@pytest.mark.parametrize(("days", "quiet"), [(9.9, False), (10.1, True), (400, True)])
def test_a_table_is_left_alone_once_a_start_would_write_its_newest_entry_again(
    days: float, quiet: bool
) -> None:
    found = looked(a_world(), days)
    assert bool(found.quiet) is quiet
    assert not quiet or f"no entry for {days:.0f} days" in found.quiet
    assert found.commits[PIPELINE], "its quarantine is maintained anyway"


@pytest.mark.parametrize(("newest", "quiet"), [(25, False), (19, True)])
def test_of_several_pipelines_the_newest_entry_decides(newest: float, quiet: bool) -> None:
    world = two_pipelines(newest)
    both = [ledger(world), ledger(world, other())]
    assert bool(maintainable(both, 30 * DAY).quiet) is quiet


def test_a_table_is_left_alone_while_only_the_offsets_table_has_its_entries() -> None:
    world = a_world()
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1
    assert looked(world).quiet.startswith("log clean-up has taken all entries")
    Driver(world).open()
    assert looked(world).quiet == ""


class Busy(MemoryLog):
    """The log of a table to which a run commits while it is looked at, so many times."""

    def __init__(self, world: World, times: int) -> None:
        super().__init__(world.log)
        self._world = world
        self._times = times

    def commits_backwards(self) -> Iterator[CommitRecord]:
        return self._while_a_run_commits([*super().commits_backwards()])

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        return self._while_a_run_commits([*super().commits_after(version)])

    def _while_a_run_commits(self, read: list[CommitRecord]) -> Iterator[CommitRecord]:
        if self._times:
            self._times -= 1
            self._world.ends[place(0)] += 1
            until_done(self._world)
        return iter(read)


@pytest.mark.parametrize("times", [1, 4])
def test_a_run_that_commits_meanwhile_is_no_fault(times: int) -> None:
    world = a_world()
    found = maintainable([(a_pipeline(), store(world, Busy(world, times)))], 0)
    assert max(found.commits[PIPELINE]) == 2 + times


def test_what_still_looks_broken_after_several_looks_is_raised() -> None:
    world = a_world()
    with pytest.raises(LedgerBroken):
        maintainable([(a_pipeline(), store(world, Busy(world, 99)))], 0)
