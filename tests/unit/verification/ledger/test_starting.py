"""Where a verification may begin: tables of logs, and what an entry in them is still worth."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from rivermouth.verification.ledger import chain
from rivermouth.verification.ledger.entry import Commit, LedgerEntry, parse_entry
from rivermouth.verification.ledger.log import (
    Ledger,
    note_foreign,
    place_of,
    read_ledger,
    read_since,
    read_since_time,
    void_since,
)
from rivermouth.verification.proved import Place
from rivermouth.verification.result import Findings, Unchecked
from tests.unit.verification.doubles import (
    CREATE,
    ZERO,
    MemoryCommits,
    by_others,
    commit,
    restore,
    span,
)

pytestmark = pytest.mark.unit

ONE, TWO, THREE = commit(1, 0, 2), commit(2, 2, 4), commit(3, 4, 6)
SECOND = Place(2, "p-2", 2)


def timed(made: Commit, ms: int) -> Commit:
    return Commit({**made.info, "timestamp": ms}, made.txns)


def since(*commits: Commit, place: Place = SECOND, first: int = 0) -> Ledger | str:
    return read_since(MemoryCommits([*commits], first), "p", place, Findings("p"))


def begun(found: Ledger | str) -> tuple[Ledger, LedgerEntry]:
    """The ledger, and the entry after which it begins."""
    assert isinstance(found, Ledger)
    assert found.since is not None
    return found, found.since


def test_only_what_comes_after_the_entry_is_covered() -> None:
    found, entry = begun(since(CREATE, ONE, TWO, THREE))
    assert [each.sequence for each in found.effective] == [2, 3]
    assert [each.sequence for each in found.covered] == [3]
    assert (entry.ranges, entry.position) == ((), {ZERO: 4})
    assert found.covered[0].ranges == (span(4, 6),)
    nothing_new, _ = begun(since(CREATE, ONE, TWO))
    assert nothing_new.covered == ()


def test_the_ledger_is_one_of_which_the_rest_was_removed_whatever_the_version() -> None:
    for commits, version in (([CREATE, ONE, TWO, THREE], 2), ([TWO, THREE], 0)):
        found, _ = begun(since(*commits, place=Place(2, "p-2", version)))
        assert found.trimmed


class Counting(MemoryCommits):
    """Counts how often each version was read, and the versions were listed."""

    def __init__(self, commits: list[Commit]) -> None:
        super().__init__(commits)
        self.reads = Counter[int]()
        self.listed = 0

    def versions(self) -> list[int]:
        self.listed += 1
        return super().versions()

    def read(self, version: int, findings: Findings) -> Commit:
        self.reads[version] += 1
        return super().read(version, findings)


def test_the_log_before_the_entry_is_not_read() -> None:
    log = Counting([CREATE, ONE, TWO, THREE])
    assert isinstance(read_since(log, "p", SECOND, Findings("p")), Ledger)
    assert log.reads == {2: 1, 3: 1}


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
    "a replay": (
        [CREATE, ONE, TWO, commit(3, 4, 4, replayed=[["t", 0, 2, 4]]), commit(4, 4, 6)],
        0,
        "entry 3 replays records of earlier entries",
    ),
}


@pytest.mark.parametrize("case", [*VOID])
def test_an_entry_that_is_not_in_effect_is_not_built_on(case: str) -> None:
    commits, first, reason = VOID[case]
    found = since(*commits, first=first)
    assert isinstance(found, str)
    assert found.startswith(reason)
    log = MemoryCommits(commits, first)
    assert void_since(log, "p", SECOND, log.versions()) == found


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
    _, entry = begun(since(CREATE, ONE, TWO, *later))
    assert entry.sequence == 2


def foreign(*commits: Commit) -> str:
    """What is said of commits of others; empty where nothing is."""
    (found, _), findings = begun(since(CREATE, ONE, TWO, *commits)), Findings("p")
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
    back = [*log, restore(2), commit(4, 4, 4, accepts={"kind": "restore"})]
    for commits, time_ms, expected in ((log, 301, 3), (log, 300, 2), (log, 101, 1), (back, 301, 2)):
        _, entry = begun(read_since_time(MemoryCommits(commits), "p", time_ms, Findings("p")))
        assert entry.sequence == expected


@pytest.mark.parametrize("log", [[CREATE, timed(ONE, 100)], [CREATE, ONE]])
def test_without_an_entry_from_before_the_time_all_is_read(log: list[Commit]) -> None:
    found = read_since_time(MemoryCommits(log), "p", 100, Findings("p"))
    assert found == "the log holds no entry from before that time"


RESET: dict[str, Any] = {"accepts": {"kind": "reset"}}
ACCEPTED: dict[str, Any] = {"accepts": {"kind": "restore"}}


@pytest.mark.parametrize("wound_back", [[], [restore(1)]], ids=["a reset", "a RESTORE"])
def test_what_was_rolled_back_since_a_time_is_read_once(wound_back: list[Commit]) -> None:
    entries = [timed(commit(n, 2 * n, 2 * n + 2), 100) for n in range(1, 51)]
    accepting = timed(commit(51, 2, 2, **(ACCEPTED if wound_back else RESET)), 200)
    log = Counting([CREATE, *entries, *wound_back, accepting])
    found = read_since_time(log, "p", 150, Findings("p"))
    if wound_back:
        assert begun(found)[1].sequence == 1
    else:
        assert found == "the log holds no entry from before that time"
    assert max(log.reads.values()) <= 2, "back to the entry, and once more from there on"


def a_log(dice: random.Random) -> list[Commit]:
    """Any few commits, some of which roll others back."""
    log = [CREATE]
    for number in range(1, dice.randrange(2, 12)):
        entry = timed(commit(number, 2 * number, 2 * number + 2), 100 * len(log))
        log.append(
            dice.choice(
                [
                    entry,
                    entry,
                    timed(commit(number, 0, 0, **RESET), 100 * len(log)),
                    timed(commit(number, 2, 2, **ACCEPTED), 100 * len(log)),
                    commit(number, 2, 2, changes=CHANGES),
                    commit(number, 0, 2, pipeline="q", topic="u"),
                    restore(dice.randrange(len(log))),
                    restore(dice.randrange(len(log))),
                    by_others("RESTORE", timestamp="2026-01-01"),
                    by_others("TRUNCATE"),
                    by_others("OPTIMIZE"),
                    Commit({"operation": "WRITE", "userMetadata": "{"}, {}),
                ]
            )
        )
    return log


@pytest.mark.parametrize("seed", range(40))
def test_a_log_read_back_says_what_the_chain_says(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(50):
        log = MemoryCommits(a_log(dice))
        ledger = read_ledger(log, "p", Findings("p"))
        assert ledger is not None
        back = chain.read_back(log, "p", log.versions())
        assert [each.version for each in back if each.effective] == [
            each.version for each in reversed(ledger.effective)
        ]
        for each in ledger.recorded:
            long = read_since(log, "p", place_of(each), Findings("p"))
            short = void_since(log, "p", place_of(each), log.versions())
            assert short == (long if isinstance(long, str) else None)


def test_whether_an_entry_is_in_effect_is_told_without_the_positions_of_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = list[int]()

    def parsing(version: int, facts: Mapping[str, Any], committed_ms: int = 0) -> LedgerEntry:
        parsed.append(version)
        return parse_entry(version, facts, committed_ms)

    monkeypatch.setattr(chain, "parse_entry", parsing)
    log = Counting([CREATE, ONE, TWO, *(commit(n, 2 * n - 2, 2 * n) for n in range(3, 30))])
    assert void_since(log, "p", SECOND, log.versions()) is None
    assert parsed == [2]
    assert (log.listed, sum(log.reads.values())) == (1, 29)
