"""Records with any number of rows: the rows of an entry are as many as its commit wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rivermouth.verify.ledger.entry import LedgerChanges, LedgerEntry
from rivermouth.verify.proofs.append import verify_append
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.result import Kind, Unchecked
from rivermouth.verify.subject import Subject
from tests.unit.verify.doubles import (
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    message,
    row,
    span,
    stored,
    subject,
    value,
    workspace,
)

pytestmark = pytest.mark.unit

RECORDS = {ZERO: [message(n, b"bad" if n == 6 else value(n, n)) for n in range(8)]}
ROWS = [row(0, each, n) for n, rows in enumerate((3, 0, 1, 2, 4, 1)) for each in range(rows)]
PLAIN = [row(7, 7, 7)]
MADE: Mapping[str, Any] = {"transform": "shop:rows", "explode": True, "left_out": None}


def entries(first: int | None = 4, **more: Any) -> list[LedgerEntry]:
    """Two of exploded rows and a plain one, which has the bad record, at offset 6."""
    made = {**MADE, **more}
    return [
        entry(1, span(0, 3), written=first, **made),
        entry(2, span(3, 6), written=7, **made),
        entry(3, span(6, 8)),
    ]


def verified(
    folder: Path, rows: Sequence[Mapping[str, Any]], *told: LedgerEntry, **facts: Any
) -> Subject:
    config = configured(folder)
    asked = subject(config, MemorySource(RECORDS), *(told or entries()), **facts)
    bad = Quarantined(np.array([6]), np.array([hash((None, b"bad"))]))
    verify_append(asked, stored([*rows, *PLAIN], {ZERO: bad}), workspace(folder))
    return asked


def left(asked: Subject) -> dict[Unchecked, int]:
    return asked.findings.proof().left


def test_as_many_rows_as_were_written_are_right_whichever_record_they_are_of(
    tmp_path: Path,
) -> None:
    asked = verified(tmp_path, ROWS)
    assert found(asked) == {}
    assert left(asked) == {
        Unchecked.LEFT_OUT: 1,
        Unchecked.MADE: 11,
        Unchecked.EXPLODED: 5,
    }


CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], dict[Kind, int], str]] = {
    "a row is lost": (ROWS[1:], {Kind.MISSING: 1}, "entry 1: 1 row of 4 missing"),
    "all rows of a record are lost": (ROWS[3:], {Kind.MISSING: 3}, "entry 1: 3 rows of 4 missing"),
    "a row is there once more": (
        [*ROWS, ROWS[5]],
        {Kind.DUPLICATED: 1},
        "entry 2: 8 rows in the table, but its commit wrote 7",
    ),
    "all rows are there once more": ([*ROWS, *ROWS], {Kind.DUPLICATED: 11}, "entry 1: 8 rows"),
    "a row of a bad record": (
        [*ROWS, row(6, 6, 6)],
        {Kind.DUPLICATED: 1, Kind.DIFFERENT: 1},
        "t-0@6: more than once in table and quarantine",
    ),
    "a plain row twice": (
        [*ROWS, *PLAIN],
        {Kind.DUPLICATED: 1},
        "t-0@7: more than once in table and quarantine",
    ),
    "a row behind the ledger": (
        [*ROWS, row(8, 8, 8)],
        {Kind.UNEXPECTED: 1},
        "t-0@8: in the table, but in no range of the ledger",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_lost_doubled_or_invented_is_found(tmp_path: Path, name: str) -> None:
    rows, kinds, said = CASES[name]
    asked = verified(tmp_path, rows)
    assert found(asked) == kinds
    assert said in "\n".join(asked.findings.proof().problems)


def test_each_row_has_the_timestamp_of_its_record(tmp_path: Path) -> None:
    wrong = {**ROWS[1], "_kafka": {**ROWS[1]["_kafka"], "timestamp": 1}}
    asked = verified(tmp_path, [ROWS[0], wrong, *ROWS[2:]])
    assert found(asked) == {Kind.DIFFERENT: 1}


def test_a_bad_record_of_several_rows_is_not_in_quarantine_and_in_the_table(tmp_path: Path) -> None:
    whole = entry(1, span(0, 8), written=12, **MADE)
    assert found(verified(tmp_path, ROWS, whole)) == {}
    more = entry(1, span(0, 8), written=14, **MADE)
    asked = verified(tmp_path, [*ROWS, row(6, 6, 6), row(6, 7, 6)], more)
    assert found(asked) == {Kind.DUPLICATED: 1, Kind.DIFFERENT: 1}


def test_where_a_commit_tells_no_number_of_rows_that_is_said(tmp_path: Path) -> None:
    asked = verified(tmp_path, ROWS[1:], *entries(first=None))
    assert found(asked) == {}
    assert left(asked)[Unchecked.UNCOUNTED] == 3


def test_beside_rows_of_former_records_nothing_is_found_that_may_be_right(tmp_path: Path) -> None:
    other = LedgerChanges(("topic",), False, frozenset({"t"}), {ZERO: (6, 0)})
    changed = entry(3, span(0, 0), changes=other, accepted=(("topic", 3),))
    told = [*entries()[:2], changed, entry(4, span(0, 8), written=11, **MADE)]
    rows = [*ROWS, *ROWS, row(0, 1, 0)]
    asked = verified(tmp_path, rows, *told)
    assert found(asked) == {}
    assert left(asked)[Unchecked.UNCOUNTED] == 24
    plain = [row(n, n, n) for n in range(6)]
    former = verified(tmp_path, [*ROWS, *plain], *told[:3], entry(4, span(0, 8)))
    assert found(former) == {}
