"""Where a verification may begin: tables of logs, and what an entry in them is still worth."""

from __future__ import annotations

from typing import Any

import pytest

from rivermouth.verify.ledger.commits import Commit
from rivermouth.verify.ledger.log import Ledger
from rivermouth.verify.ledger.starting import Void, note_foreign, read_since, read_since_time
from rivermouth.verify.proved import Place
from rivermouth.verify.result import Findings, Unchecked
from tests.unit.verify.doubles import CREATE, ZERO, MemoryCommits, commit, span

pytestmark = pytest.mark.unit

ONE, TWO, THREE = commit(1, 0, 2), commit(2, 2, 4), commit(3, 4, 6)
SECOND = Place(2, "p-2", 2)


def by_others(operation: str, **parameters: Any) -> Commit:
    return Commit({"operation": operation, "operationParameters": parameters}, {})


def restore(version: int) -> Commit:
    return by_others("RESTORE", version=str(version))


def timed(made: Commit, ms: int) -> Commit:
    return Commit({**made.info, "timestamp": ms}, made.txns)


def since(*commits: Commit, place: Place = SECOND, first: int = 0) -> Ledger | Void:
    return read_since(MemoryCommits([*commits], first), "p", place, Findings("p"))


def test_only_what_comes_after_the_entry_is_covered() -> None:
    found = since(CREATE, ONE, TWO, THREE)
    assert isinstance(found, Ledger)
    assert [each.sequence for each in found.effective] == [2, 3]
    assert [each.sequence for each in found.covered] == [3]
    assert found.since is not None
    assert found.since.ranges == ()
    assert found.since.position == {ZERO: 4}
    assert found.covered[0].ranges == (span(4, 6),)


def test_the_ledger_is_one_of_which_the_rest_was_removed_whatever_the_version() -> None:
    for commits, version in (([CREATE, ONE, TWO, THREE], 2), ([TWO, THREE], 0)):
        found = since(*commits, place=Place(2, "p-2", version))
        assert isinstance(found, Ledger)
        assert found.trimmed


def test_nothing_new_covers_nothing() -> None:
    found = since(CREATE, ONE, TWO)
    assert isinstance(found, Ledger)
    assert found.covered == ()


def test_the_log_before_the_entry_is_not_read() -> None:
    read = list[int]()

    class Counting(MemoryCommits):
        def read(self, version: int, findings: Findings) -> Commit:
            read.append(version)
            return super().read(version, findings)

    log = Counting([CREATE, ONE, TWO, THREE])
    assert isinstance(read_since(log, "p", SECOND, Findings("p")), Ledger)
    assert read == [2, 3]


CHANGES = {"kinds": ["topic"], "topics": {"t": "old"}, "moved": [["t", 0, 4, 0]]}
VOID = {
    "its commit is gone": ([TWO, THREE], 5, "version 2, which holds entry 2, is not in the log"),
    "another commit is there": (
        [CREATE, ONE, commit(2, 2, 4, commit="other")],
        0,
        "version 2 is another commit than that of entry 2",
    ),
    "no entry is there": ([CREATE, ONE, by_others("OPTIMIZE")], 0, "version 2 is another commit"),
    "a RESTORE to before it": ([CREATE, ONE, TWO, restore(1)], 0, "entry 2 was rolled back"),
    "a RESTORE that was accepted": (
        [CREATE, ONE, TWO, restore(1), commit(3, 2, 2, accepts={"kind": "restore"})],
        0,
        "entry 2 was rolled back",
    ),
    "a reset": (
        [CREATE, ONE, TWO, commit(3, 0, 0, accepts={"kind": "reset"})],
        0,
        "entry 2 was rolled back",
    ),
    "a TRUNCATE": ([CREATE, ONE, TWO, by_others("TRUNCATE")], 0, "version 3, TRUNCATE by others"),
    "an accepted change": (
        [CREATE, ONE, TWO, commit(3, 0, 2, changes=CHANGES)],
        0,
        "entry 3 accepts a change",
    ),
}


@pytest.mark.parametrize("case", [*VOID])
def test_an_entry_that_is_not_in_effect_is_not_built_on(case: str) -> None:
    commits, first, reason = VOID[case]
    found = since(*commits, first=first)
    assert isinstance(found, Void)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    "later",
    [
        [restore(2)],
        [THREE, restore(2), commit(4, 4, 4, accepts={"kind": "restore"})],
        [restore(1), restore(2)],
        [by_others("OPTIMIZE"), by_others("VACUUM END")],
    ],
    ids=["RESTORE to it", "accepted", "there and back", "upkeep"],
)
def test_an_entry_that_is_in_effect_is_built_on(later: list[Commit]) -> None:
    found = since(CREATE, ONE, TWO, *later)
    assert isinstance(found, Ledger)
    assert found.since is not None
    assert found.since.sequence == 2


def foreign(*commits: Commit) -> str:
    """What is said of commits of others; empty where nothing is."""
    found, findings = since(CREATE, ONE, TWO, *commits), Findings("p")
    assert isinstance(found, Ledger)
    note_foreign(found, findings)
    proof = findings.proof()
    assert len(proof.unchecked) == min(1, proof.left.get(Unchecked.FOREIGN, 0))
    return "".join(proof.unchecked).partition("entries up to 2: by ")[2]


def test_commits_of_others_that_may_have_changed_earlier_rows_are_named() -> None:
    part = by_others("DELETE", predicate='["id = 1"]')
    told = foreign(part, by_others("UPDATE"), THREE)
    assert told == "DELETE at version 3, UPDATE at version 4"
    assert foreign(by_others("WRITE", mode="Append")) == "WRITE at version 3"
    assert foreign(by_others("something new")) == "something new at version 3"
    assert foreign(*[part] * 7).endswith("DELETE at version 7, 2 more")


def test_upkeep_the_soft_deletes_of_a_pipeline_and_accepted_deletes_are_not_named() -> None:
    part = by_others("DELETE", predicate='["id = 1"]')
    accepting = commit(3, 4, 4, deletes=[{"version": 3, "rows": {"t": {"0": [0, 1]}}}])
    assert foreign(part, accepting) == ""
    assert foreign(by_others("DELETE", predicate='["_tombstone#12"]')) == ""
    assert foreign(by_others("OPTIMIZE"), commit(9, 0, 5, pipeline="q", topic="u")) == ""


def test_a_time_means_the_newest_entry_from_before_it_that_is_in_effect() -> None:
    log = [CREATE, timed(ONE, 100), timed(TWO, 200), timed(THREE, 300)]
    for time_ms, expected in ((301, 3), (300, 2), (101, 1)):
        found = read_since_time(MemoryCommits(log), "p", time_ms, Findings("p"))
        assert isinstance(found, Ledger)
        assert found.since is not None
        assert found.since.sequence == expected
    back = [*log, restore(2), commit(4, 4, 4, accepts={"kind": "restore"})]
    found = read_since_time(MemoryCommits(back), "p", 301, Findings("p"))
    assert isinstance(found, Ledger)
    assert found.since is not None
    assert found.since.sequence == 2


@pytest.mark.parametrize("log", [[CREATE, timed(ONE, 100)], [CREATE, ONE]])
def test_without_an_entry_from_before_the_time_all_is_read(log: list[Commit]) -> None:
    found = read_since_time(MemoryCommits(log), "p", 100, Findings("p"))
    assert found == Void("the log holds no entry from before that time")
