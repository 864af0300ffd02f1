"""A log of commits is read as the chain of one pipeline's entries; every break is a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Uuid

from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.ledger.log import Ledger, read_ledger
from rivermouth.verification.result import Findings, Kind
from tests.unit.verification.doubles import CREATE, MemoryCommits, commit, found, problems, restore

pytestmark = pytest.mark.unit

Range = tuple[int, int, int]


def wrote(sequence: int, *ranges: Range, txn: int | None = None, **changes: Any) -> Commit:
    """A commit with an entry; its position is the end of each range unless it is given."""
    facts = {
        "commit": f"c{sequence}",
        "ranges": [["t", *each] for each in ranges],
        "position": {"t": {str(number): until for number, _, until in ranges}},
        **changes,
    }
    txns = {"rivermouth/p": sequence if txn is None else txn}
    return replace(commit(sequence, 0, 0, **facts), txns=txns)


def at(*offsets: int) -> dict[str, dict[str, int]]:
    return {"t": {str(number): offset for number, offset in enumerate(offsets)}}


def accepted(kind: str, sequence: int, *ranges: Range, **position: int) -> Commit:
    at = {"t": {number.removeprefix("p"): offset for number, offset in position.items()}}
    return wrote(sequence, *ranges, accepts={"kind": kind}, position=at)


def ledger_of(
    commits: Sequence[Commit], first: int = 0, checkpointed: int = -1
) -> tuple[Ledger, Findings]:
    findings = Findings("p")
    ledger = read_ledger(MemoryCommits(commits, first, checkpointed), "p", findings)
    assert ledger is not None
    return ledger, findings


def test_a_good_chain_has_nothing_wrong_and_foreign_commits_are_ignored() -> None:
    other = Commit({"operation": "WRITE", "userMetadata": "{}"}, {"rivermouth/other": 1})
    ledger, findings = ledger_of([CREATE, wrote(1, (0, 0, 5)), other, wrote(2, (0, 5, 9))])
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [1, 2]
    assert (ledger.version, ledger.trimmed, ledger.recorded) == (3, False, ledger.effective)


def test_where_there_is_no_commit_there_is_no_ledger() -> None:
    assert read_ledger(MemoryCommits([]), "p", Findings("p")) is None


BROKEN: Mapping[str, tuple[Commit, Mapping[Kind, int], str]] = {
    "a sequence left out": (
        wrote(3, (0, 5, 9)),
        {Kind.FAULT: 1},
        "entry 3 (version 2): expected sequence 2",
    ),
    "a sequence twice": (
        wrote(1, (0, 5, 9), commit="other"),
        {Kind.FAULT: 1},
        "entry 1 (version 2): expected sequence 2",
    ),
    "another txn": (
        wrote(2, (0, 5, 9), txn=3),
        {Kind.FAULT: 1},
        "entry 2 (version 2): its txn has version 3, expected 2",
    ),
    "a commit id twice": (
        wrote(2, (0, 5, 9), commit="c1"),
        {Kind.FAULT: 1},
        "an earlier entry has the same commit id c1",
    ),
    "a gap": (wrote(2, (0, 6, 9)), {Kind.GAP: 1}, "gap t-0[5,6) before t-0[6,9)"),
    "an overlap": (wrote(2, (0, 4, 9)), {Kind.OVERLAP: 1}, "t-0[4,9) starts before 5"),
    "a position that no range explains": (
        wrote(2, (0, 5, 9), position={"t": {"0": 9, "1": 3}}),
        {Kind.FAULT: 1},
        "its position is not the end of its ranges: t-1 at 3, expected None",
    ),
    "a txn without an entry": (
        Commit({"operation": "WRITE"}, {"rivermouth/p": 2}),
        {Kind.FAULT: 1},
        "version 2 has the txn of this pipeline, but no entry of it",
    ),
    "an entry of another pipeline": (
        wrote(2, (0, 5, 9), pipeline="q"),
        {Kind.FAULT: 1},
        "format 1, pipeline q",
    ),
    "an entry of a later format": (
        wrote(2, (0, 5, 9), rivermouth=2),
        {Kind.FAULT: 1},
        "format 2, pipeline p",
    ),
    "a RESTORE that nobody accepted": (
        restore(0),
        {Kind.FAULT: 1},
        "a RESTORE rolled back the entries 1 to 1; no entry accepts it",
    ),
    "a RESTORE to a point in time": (
        restore(""),
        {Kind.FAULT: 1},
        "RESTORE at version 2: it does not tell which version it restored",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_the_chain_is_found_and_named(case: str) -> None:
    commit, expected, line = BROKEN[case]
    _, findings = ledger_of([CREATE, wrote(1, (0, 0, 5)), commit])
    assert found(findings) == dict(expected)
    assert line in problems(findings)[0]


def gained(start: int, *, lost: bool = False) -> Commit:
    """An entry by which partition 1 is read, from ``start`` to 9."""
    more: dict[str, Any] = {"lost": [["t", 1, start, 9]]} if lost else {}
    return wrote(2, (1, start, 9), position=at(5, 9), **more)


@pytest.mark.parametrize(
    ("entry", "gaps"),
    [
        (gained(0), 0),
        (gained(0, lost=True), 0),
        (gained(4), 1),
    ],
)
def test_a_partition_that_a_known_topic_gained_begins_at_0(entry: Commit, gaps: int) -> None:
    _, findings = ledger_of([CREATE, wrote(1, (0, 0, 5)), entry])
    assert found(findings) == ({Kind.GAP: 1} if gaps else {})
    assert not gaps or "gap t-1[0,4) before t-1[4,9)" in problems(findings)[0]


def test_an_accepted_restore_goes_on_where_the_restored_entry_ended() -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), wrote(2, (0, 5, 9), (1, 0, 7), position=at(9, 7))]
    commits += [restore(1), accepted("restore", 3, p0=5, p1=0)]
    commits += [wrote(4, (0, 5, 6), position=at(6, 0))]
    ledger, findings = ledger_of(commits)
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [1, 3, 4]
    assert [each.sequence for each in ledger.recorded] == [1, 2, 3, 4]


def test_an_accepted_restore_that_starts_elsewhere_is_a_fault() -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), wrote(2, (0, 5, 9)), restore(1)]
    _, findings = ledger_of([*commits, accepted("restore", 3, p0=9)])
    assert found(findings) == {Kind.FAULT: 1}
    assert "not that of the restored entry: t-0 at 9, expected 5" in problems(findings)[0]


def test_a_partition_that_was_read_before_the_id_of_its_topic_was_told_starts_again() -> None:
    not_told = {"t": str(Uuid(0, 0))}
    commits = [CREATE, wrote(1, (0, 0, 5), topics=not_told)]
    commits += [wrote(2, (1, 0, 7), position=at(5, 7), topics=not_told), restore(1)]
    _, findings = ledger_of([*commits, accepted("restore", 3, p0=5, p1=0)])
    assert problems(findings) == ()


def test_an_accepted_reset_starts_a_chain_of_its_own() -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), accepted("reset", 2), wrote(3, (0, 1, 5))]
    ledger, findings = ledger_of(commits)
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [2, 3]


def test_what_was_wrong_with_entries_that_were_rolled_back_and_accepted_is_no_finding() -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), wrote(2, (0, 7, 9)), restore(1)]
    _, findings = ledger_of(commits)
    assert found(findings) == {Kind.GAP: 1, Kind.FAULT: 1}
    _, findings = ledger_of([*commits, accepted("restore", 3, p0=5)])
    assert found(findings) == {}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (wrote(3, (0, 9, 9), replayed=[["t", 0, 5, 9]]), ""),
        (wrote(3, (0, 9, 9), replayed=[["t", 0, 0, 9]]), ""),
        (wrote(3, (0, 9, 9), replayed=[["t", 0, 5, 8]]), "t-0[5,8), which does not end at"),
        (wrote(3, (0, 9, 9), replayed=[["t", 0, 5, 12]]), "t-0[5,12), which does not end at"),
        (wrote(3, (0, 9, 9), replayed=[["t", 0, 9, 9]]), "t-0[9,9), which does not end at"),
        (wrote(3, (0, 9, 9), replayed=[["t", 1, 0, 9]]), "t-1[0,9), which does not end at"),
        (wrote(3, (0, 9, 12), replayed=[["t", 0, 5, 12]]), "covers offsets of its own"),
    ],
)
def test_a_replay_reads_nothing_new_and_ends_at_the_position(entry: Commit, said: str) -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), wrote(2, (0, 5, 9)), entry]
    _, findings = ledger_of(commits)
    assert found(findings) == ({Kind.FAULT: 1} if said else {})
    assert said in "".join(problems(findings))


def test_a_restore_that_a_second_one_takes_back_leaves_all_entries_effective() -> None:
    commits = [CREATE, wrote(1, (0, 0, 5)), wrote(2, (0, 5, 9)), restore(1), restore(2)]
    ledger, findings = ledger_of(commits)
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [1, 2]


def test_a_log_that_begins_late_is_trimmed_and_its_first_entry_is_taken_as_it_is() -> None:
    ledger, findings = ledger_of([wrote(7, (0, 50, 60))], first=9, checkpointed=9)
    assert problems(findings) == ()
    assert ledger.trimmed


def test_missing_commits_are_faults() -> None:
    _, findings = ledger_of([wrote(7, (0, 50, 60))], first=9, checkpointed=7)
    assert problems(findings) == ("the log lacks versions 0 to 8, and no checkpoint covers them",)

    class Holed(MemoryCommits):
        def versions(self) -> list[int]:
            return [each for each in super().versions() if each != 1]

    findings = Findings("p")
    read_ledger(Holed([CREATE, CREATE, wrote(1, (0, 0, 5))]), "p", findings)
    assert problems(findings) == ("the log lacks versions 1 to 1",)


@pytest.mark.parametrize(
    "emptying",
    [
        {"operation": "DELETE", "operationParameters": {}},
        {"operation": "DELETE", "operationParameters": {"predicate": '["true"]'}},
        {"operation": "TRUNCATE"},
        {"operation": "CREATE OR REPLACE TABLE AS SELECT"},
        {"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}},
    ],
    ids=lambda each: each["operation"],
)
def test_a_restore_to_a_table_that_others_emptied_goes_on_from_nothing(
    emptying: Mapping[str, Any],
) -> None:
    """Found by the torture: verify expected the position of the entry before the DELETE."""
    optimized = Commit({"operation": "OPTIMIZE"}, {})
    commits = [CREATE, wrote(1, (0, 0, 0)), wrote(2, (0, 0, 5)), Commit(emptying, {}), optimized]
    commits += [accepted("reset", 3, (0, 0, 0), p0=0), restore(4)]
    commits += [accepted("restore", 4, (0, 0, 0), p0=0), wrote(5, (0, 0, 7))]
    ledger, findings = ledger_of(commits)
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [4, 5]


def test_a_delete_of_some_rows_leaves_the_entries_effective() -> None:
    some = {"operation": "DELETE", "operationParameters": {"predicate": '["(n = 1)"]'}}
    commits = [CREATE, wrote(1, (0, 0, 5)), Commit(some, {}), wrote(2, (0, 5, 9)), restore(2)]
    ledger, findings = ledger_of([*commits, accepted("restore", 3, (0, 5, 5), p0=5)])
    assert problems(findings) == ()
    assert [each.sequence for each in ledger.effective] == [1, 3]
