"""Records with any number of rows: the rows of an entry are as many as its commit wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rivermouth.verification.ledger.entry import LedgerChanges, LedgerEntry, left_out, written
from rivermouth.verification.proofs.append import verify_append
from rivermouth.verification.proofs.decoding import LeftOut
from rivermouth.verification.result import Findings, Kind, Unchecked
from rivermouth.verification.subject import Subject
from tests.unit.verification.doubles import (
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    left,
    message,
    quarantined,
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
    bad = {ZERO: quarantined(RECORDS[ZERO][6])}
    verify_append(asked, stored([*rows, *PLAIN], bad), workspace(folder))
    return asked


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


def test_an_entry_without_a_row_is_not_checked_where_its_commit_tells_no_number(
    tmp_path: Path,
) -> None:
    asked = verified(tmp_path, ROWS[4:], *entries(first=None))
    assert found(asked) == {}
    assert left(asked)[Unchecked.UNCOUNTED] == 1


def test_beside_rows_of_former_records_nothing_is_found_that_may_be_right(tmp_path: Path) -> None:
    other = LedgerChanges(("topic",), False, frozenset({"t"}), {ZERO: (6, 0)})
    changed = entry(3, span(0, 0), changes=other, accepted=(("topic", 3),))
    told = [*entries()[:2], changed, entry(4, span(0, 8), written=11, **MADE)]
    rows = [*ROWS, *ROWS, row(0, 1, 0)]
    asked = verified(tmp_path, rows, *told)
    assert found(asked) == {}
    assert left(asked)[Unchecked.UNCOUNTED] == 24 + 2, "and two entries of which no row is told"
    plain = [row(n, n, n) for n in range(6)]
    former = verified(tmp_path, [*ROWS, *plain], *told[:3], entry(4, span(0, 8)))
    assert found(former) == {}


# Records without a row: as many as a commit tells of were left out, more are missing


def made(sequence: int, left_out: int | None, transform: str = "shop:large") -> LedgerEntry:
    return entry(sequence, transform=transform, left_out=left_out)


LEAVING_OUT = [made(1, 2, ""), made(2, 0), made(3, 2), made(4, None)]


@pytest.mark.parametrize(
    ("missing", "reported", "found", "left"),
    [
        ([], [], 0, 0),
        ([0, 1], [0, 1], 0, 0),  # the rows of these are all due
        ([2, 2], [], 0, 2),
        ([2, 2, 2], [], 1, 2),
        ([3, 3, 3], [], 0, 3),  # nobody knows how many
        ([0, 2, 3], [0], 0, 2),
    ],
)
def test_no_more_records_are_left_out_than_the_commit_tells(
    missing: list[int], reported: list[int], found: int, left: int
) -> None:
    findings, ledger = Findings("p"), LeftOut(LEAVING_OUT)
    entries = np.array(missing, np.int64)
    due = ledger.without(("t", 0), np.arange(len(missing)), entries)
    assert entries[due].tolist() == reported
    ledger.report(findings)
    proof = findings.proof()
    assert proof.counts.get(Kind.MISSING, 0) == found
    assert proof.left.get(Unchecked.LEFT_OUT, 0) == left
    assert all("entry 3" in line and "t-0@0" in line for line in proof.problems)


def facts(applied: object, **more: object) -> dict[str, Any]:
    ranges = {"partitions": [0, 1, 3, 3], "spans": 9, "applied": applied}
    topics = {"t": {"id": "x", "ranges": ranges}, "u": {"id": "y"}}
    return {"topics": topics, "config": {}, "transform": "shop:large", **more}


SENDS: dict[str, Any] = {"config": {"delivery": "at-most-once"}}


@pytest.mark.parametrize(
    ("told", "metrics", "expected"),
    [
        (facts([1, 2, 3]), {"numOutputRows": "4"}, 2),
        (facts(5), {"numOutputRows": "15"}, 0),
        (facts(5), {}, None),
        (facts(0), {}, 0),
        (facts(5, counted=False), {}, 0),
        (facts(5, explode=True), {"numOutputRows": "40"}, None),
        ({"topics": {}, "config": {}}, {}, 0),
        # The entry of a pipeline that sends tells the number itself.
        (facts(5, **SENDS, left_out=3), {"numOutputRows": "0"}, 3),
        (facts(5, **SENDS), {"numOutputRows": "0"}, 0),
        (facts(5, **SENDS, counted=False, left_out=1), {"numOutputRows": "0"}, 1),
    ],
)
def test_a_commit_and_its_entry_tell_how_many_were_left_out(
    told: dict[str, Any], metrics: dict[str, str], expected: int | None
) -> None:
    assert left_out(told, metrics) == expected


@pytest.mark.parametrize(
    ("told", "metrics", "expected"),
    [
        (facts(5), {"numOutputRows": "40"}, 40),
        (facts(5), {}, None),
        (facts(0), {}, 0),
        (facts(5, counted=False), {}, None),
    ],
)
def test_a_commit_tells_how_many_rows_it_wrote(
    told: dict[str, Any], metrics: dict[str, str], expected: int | None
) -> None:
    assert written(told, metrics) == expected
