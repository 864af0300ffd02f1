"""The model of the protocol: no invariant falls, and each falls once its guard is taken out."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.faults.model.__main__ import EVERY
from tests.faults.model.configurations import FILES, LOCKED, small
from tests.faults.model.explore import FAULTS, Configuration, explore
from tests.faults.model.guards import Guards
from tests.faults.model.judge import DUPLICATE, LOST, MIXED, PROJECTION, UNEXPLAINED, Judge
from tests.faults.model.machine import Action, apply
from tests.faults.model.removals import REMOVALS, Removal
from tests.faults.model.state import (
    EMPTY,
    RESTORE,
    Bad,
    Driver,
    Entry,
    Other,
    State,
    Table,
    Topic,
)

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def path(configuration: Configuration, *actions: Action) -> State:
    """The state after some actions, each of which must be enabled."""
    state = configuration.first()
    for action in actions:
        after = apply(state, action, configuration.guards)
        assert after is not None, f"{action} is not enabled"
        state = after
    return state


def batch(d: int, start: int, until: int, commit: int) -> list[Action]:
    """A batch from its plan to the commit, not yet read back."""
    plan: Action = ("plan", d, "batch", start, until)
    return [plan, ("write", d, commit), ("begin", d), ("land", d)]


# Everything that can be reached


@pytest.mark.takes_long(
    "all, two at once",
    "all at the table",
    "another topic, two at once",
    "at least once, clean-up",
    "at least once, restore",
    "at most once, clean-up",
    "at most once, restore",
    "at most once, two at once",
    "both ways, another topic",
    "both ways, clean-up",
    "both ways, two, altered",
    "clean-up and restore",
    "deleted rows, two at once",
    "emptied, another topic",
    "first rows, restore",
    "kafka",
    "log cut, two at once",
    "restore",
    "restore, two at once",
    "store, at least once",
    "store, at most once",
    "store, first rows",
    "store, totals",
)
@pytest.mark.parametrize("configuration", EVERY, ids=lambda each: each.name)
def test_no_state_that_can_be_reached_violates_an_invariant(configuration: Configuration) -> None:
    found = explore(small(configuration))
    assert found.violation == ""
    assert found.states > 200


@pytest.mark.takes_long(
    "changes_kept",
    "deletes_stand",
    "epochs_of_restored",
    "exact_version",
    "files_txn",
    "rows_unmoved (first rows)",
    "rows_unmoved (totals)",
    "trouble_outlives_cleanup",
)
@pytest.mark.parametrize("removal", REMOVALS, ids=lambda each: each.name)
def test_a_guard_that_is_taken_out_does_harm_and_none_is_done_with_it(removal: Removal) -> None:
    assert explore(removal.within).violation == ""
    found = explore(removal.without())
    assert found.violation.startswith(removal.harm)
    state = path(removal.without(), *(action for action, _ in found.trace))
    assert state == found.trace[-1][1], "the trace leads to the violation"


def test_every_guard_is_taken_out_once_and_every_fault_happens_somewhere() -> None:
    alone = {each.guards[0] for each in REMOVALS if len(each.guards) == 1}
    assert alone == {each.name for each in fields(Guards)}
    configurations = (*EVERY, *(each.within for each in REMOVALS))
    assert {fault for each in configurations for fault in each.faults} == set(FAULTS)


def test_the_command_prints_a_line_each_and_sums_up_in_json() -> None:
    command = [sys.executable, "-m", "tests.faults.model", "--small", "kafka", "read_back"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, *others, last = done.stdout.splitlines()
    assert first.startswith("kafka ")
    assert others[-1].split(maxsplit=1)[1].startswith("begin 1"), "B's commit is skipped"
    summary = json.loads(last)
    assert summary.keys() == {"states", "seconds", "violations", "guards"}
    assert (summary["violations"], summary["guards"]) == (0, {"read_back": 9})
    assert f"{summary['states']:,} states" in first


def test_offsets_and_ids_of_a_step_may_be_anything() -> None:
    far = replace(LOCKED, records=10**9)
    state = path(far, ("start", 0), *batch(0, 0, 10**8, 77), ("read_back", 0))
    assert state.drivers[0].stream == 10**8


# The judge


DISCOVERY = Entry("discovery", 1, 0, 0, commit="a")
FIRST = Entry("batch", 2, 0, 1, read=1, commit="b")
SECOND = Entry("batch", 3, 1, 2, read=1, commit="c")
AGAIN = Entry("batch", 3, 0, 1, read=1, commit="d")
STRANGE = Entry("batch", 3, 1, 2, read=2, commit="e")
CREATED = Other("CREATE")


def judged(
    *log: Entry | Other,
    quarantine: tuple[Bad, ...] = (),
    offsets: tuple[Entry, ...] | None = None,
) -> str:
    entries = tuple(each for each in log if isinstance(each, Entry))
    table = Table((CREATED, *log), 0, quarantine, entries if offsets is None else offsets)
    topic = Topic(high=2, end=2, bad=(1,) if quarantine else ())
    return Judge(FILES).violation(State(table, topic, (Driver(),))).split(":")[0]


def test_the_judge_is_content_with_a_ledger_as_it_should_be() -> None:
    assert judged(DISCOVERY, FIRST, SECOND) == ""
    assert judged(DISCOVERY, FIRST, SECOND, quarantine=(Bad("c", 1, 1), Bad("x", 1, 1))) == ""


def test_the_judge_finds_each_kind_of_harm() -> None:
    assert judged(DISCOVERY, FIRST, AGAIN) == DUPLICATE
    assert (
        judged(DISCOVERY, FIRST, SECOND, quarantine=(Bad("c", 1, 1), Bad("c", 1, 1))) == DUPLICATE
    )
    assert judged(DISCOVERY, FIRST, SECOND, quarantine=(Bad("x", 1, 1),)) == LOST
    assert judged(DISCOVERY, SECOND._replace(sequence=2)) == UNEXPLAINED
    assert judged(DISCOVERY, FIRST, STRANGE) == MIXED
    assert judged(DISCOVERY, FIRST, SECOND, offsets=(DISCOVERY, SECOND)) == PROJECTION
    assert judged(DISCOVERY, FIRST, SECOND, offsets=(DISCOVERY, FIRST, FIRST)) == PROJECTION


def test_the_judge_excuses_what_the_next_start_will_not_go_on_from() -> None:
    assert judged(DISCOVERY, FIRST, Other(RESTORE, 1)) == ""
    assert judged(DISCOVERY, FIRST, Other(EMPTY)) == ""
    assert judged(DISCOVERY, FIRST, Other(RESTORE, 1), SECOND) == ""
