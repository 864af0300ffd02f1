"""Tables of the first row per key: the whole proof over records and rows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verify.ledger.entry import Deletion, LedgerChanges, LedgerEntry, Partition
from rivermouth.verify.ledger.erased import Erased
from rivermouth.verify.ledger.log import Ledger
from rivermouth.verify.proofs.keyed import verify_first
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.result import Kind, Unchecked
from rivermouth.verify.subject import Subject
from tests.unit.verify.doubles import (
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    message,
    problems,
    row,
    span,
    stored,
    subject,
    value,
    workspace,
)

pytestmark = pytest.mark.unit

ONE: Partition = ("t", 1)
RECORDS = {
    ZERO: [
        message(0, value(1, 5)),
        message(1, value(1, 9)),  # a repeat
        message(2, value(2, 1)),  # its first record is that of the other partition
        message(3, value(3, 1)),
        message(4, value(1, 7)),  # a repeat in a later entry
    ],
    ONE: [
        message(0, value(2, 8), partition=ONE),
        message(1, value(3, 2), partition=ONE),  # in one entry, the lower partition is first
    ],
}
ENTRIES = (entry(1, span(0, 2), span(0, 1, ONE)), entry(2, span(2, 5), span(1, 2, ONE)))
ROWS = [row(1, 5, 0), row(2, 8, 0, ONE), row(3, 1, 3)]


def verified(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    entries: Sequence[LedgerEntry] = ENTRIES,
    source: MemorySource | None = None,
    **facts: Any,
) -> Subject:
    config = configured(folder, mode="insert", keys=["id"])
    asked = subject(config, source or MemorySource(RECORDS), *entries, **facts)
    verify_first(asked, stored(rows), workspace(folder, Bounds(bucket=2)))
    return asked


def test_a_good_table_has_nothing_wrong_and_says_how_many_records_were_repeats(
    tmp_path: Path,
) -> None:
    asked = verified(tmp_path, ROWS)
    assert (problems(asked), asked.findings.unchecked) == ((), [])
    proof = asked.findings.proof()
    assert (proof.repeated, proof.superseded) == (4, None)
    assert proof.as_dict()["repeated"] == 4
    assert "superseded" not in proof.as_dict()


CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind, str]] = {
    "no row": (ROWS[1:], Kind.MISSING, "key 1: found no row, expected the row of t-0@0"),
    "the repeat in its place": (
        [row(1, 9, 1), *ROWS[1:]],
        Kind.DIFFERENT,
        "key 1: found the row of t-0@1, expected the row of t-0@0",
    ),
    "the repeat beside it": (
        [*ROWS, row(1, 9, 1)],
        Kind.DUPLICATED,
        "key 1: 2 rows, from t-0@0, t-0@1",
    ),
    "the record of a later entry": (
        [ROWS[0], row(2, 1, 2), ROWS[2]],
        Kind.DIFFERENT,
        "key 2: found the row of t-0@2, expected the row of t-1@0",
    ),
    "the record of a higher partition": (
        [*ROWS[:2], row(3, 2, 1, ONE)],
        Kind.DIFFERENT,
        "key 3: found the row of t-1@1, expected the row of t-0@3",
    ),
    "a key of nobody": (
        [*ROWS, row(9, 1, 2)],
        Kind.UNEXPECTED,
        "key 9: found the row of t-0@2, expected no row",
    ),
    "another value": (
        [row(1, 6, 0), *ROWS[1:]],
        Kind.DIFFERENT,
        "key 1 of t-0@0: other values in n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_found_with_its_key(tmp_path: Path, case: str) -> None:
    rows, kind, line = CASES[case]
    asked = verified(tmp_path, rows)
    assert (found(asked), problems(asked)) == ({kind: 1}, (line,))


EXPIRED = {ZERO: (1, 5), ONE: (0, 2)}
"""The first record of key 1 is gone: the second one is the first that is visible."""
EARLIER: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind | None, int]] = {
    "the row of the record that is gone": (ROWS, None, 1),
    "of the first one that is visible": ([row(1, 9, 1), *ROWS[1:]], None, 0),
    "of a later one": ([row(1, 7, 4), *ROWS[1:]], Kind.DIFFERENT, 0),
    "none": (ROWS[1:], Kind.MISSING, 0),
}


@pytest.mark.parametrize("case", EARLIER)
def test_where_records_expired_an_earlier_row_may_stand_and_neither_none_nor_a_later_one(
    tmp_path: Path, case: str
) -> None:
    rows, kind, unchecked = EARLIER[case]
    asked = verified(tmp_path, rows, readable=EXPIRED)
    assert found(asked) == ({} if kind is None else {kind: 1})
    assert asked.findings.proof().left.get(Unchecked.KEYS, 0) == unchecked


def test_an_earlier_row_may_be_of_a_record_that_compaction_removed(tmp_path: Path) -> None:
    records = {**RECORDS, ZERO: RECORDS[ZERO][1:]}
    source = MemorySource(records, compacted=frozenset({"t"}))
    assert verified(tmp_path, ROWS, source=source).findings.proof().left == {Unchecked.KEYS: 1}
    aborted = replace(source, aborted=frozenset({(ZERO, 0)}))
    assert found(verified(tmp_path, ROWS, source=aborted)) == {Kind.DIFFERENT: 1}


def test_the_first_row_may_be_of_an_earlier_topic_of_that_name(tmp_path: Path) -> None:
    """The offset is the same, the record another one: then the values tell nothing."""
    moved = {ZERO: (2, 0), ONE: (1, 0)}
    changes = LedgerChanges(("topic",), cluster=False, other=frozenset({"t"}), moved=moved)
    accepted = entry(2, changes=changes, accepted=(("topic", 2),))
    entries = (ENTRIES[0], accepted, entry(3, span(0, 5), span(0, 2, ONE)))
    rows = [row(1, 77, 0), *ROWS[1:]]
    asked = verified(tmp_path, rows, entries=entries)
    assert found(asked) == {}
    assert asked.findings.proof().left[Unchecked.FORMER] >= 1


def test_after_an_accepted_delete_the_next_record_is_the_first(tmp_path: Path) -> None:
    taken = entry(2, version=4, deletes=(Deletion(3, {ZERO: ((0, 1),)}),))
    entries = (ENTRIES[0], taken, replace(ENTRIES[1], version=5, sequence=3))
    rows = [row(1, 7, 4), *ROWS[1:]]
    config = configured(tmp_path, mode="insert", keys=["id"])
    asked = subject(config, MemorySource(RECORDS), *entries)
    known = asked.ledger.effective
    ledger = Ledger(5, known, known, deletes={3: 1})
    erased = Erased(ledger, asked.coverage, asked.findings)
    asked = replace(asked, ledger=ledger, erased=erased)
    verify_first(asked, stored(rows), workspace(tmp_path))
    assert problems(asked) == ()
    assert erased.rows == 1
