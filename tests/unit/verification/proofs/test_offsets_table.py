"""The offsets table row by row against the ledger; counts where they were counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verification.ledger.entry import Commit, LedgerChanges
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs.offsets_table import Allowed, verify_offsets_table
from rivermouth.verification.result import Findings, Kind, Unchecked
from rivermouth.verification.subject import Subject
from tests.unit.verification.doubles import (
    ZERO,
    MemoryCommits,
    MemoryRows,
    MemorySource,
    MemoryTables,
    configured,
    entry,
    found,
    problems,
    span,
    subject,
)

pytestmark = pytest.mark.unit

ENTRIES = (entry(1, span(0, 5)), entry(2, span(5, 9)), entry(3, span(9, 9)))
LEDGER = Ledger(3, ENTRIES, ENTRIES)
DAY_MS = 86_400_000
NOTHING = Allowed(now_ms=100 * DAY_MS, wait=lambda: None)
COUNTS = ("records", "applied", "quarantined", "skipped")
NUMBERS = ("sequence", "partition", "from_offset", "until_offset", "end_offset", "table_version")
TEXTS = ("topic", "commit", "table_name", "topic_id", "cluster_id")
SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in (*NUMBERS, *COUNTS)),
        *((name, pa.string()) for name in TEXTS),
    ]
)


def fact(sequence: int, **changes: Any) -> dict[str, Any]:
    """The row of an entry's only range: 4 visible records where it has offsets, 1 of
    them bad and 1 skipped.
    """
    each = ENTRIES[min(sequence, 3) - 1].ranges[0]
    some = each.start < each.until
    return {
        "sequence": sequence,
        "topic": "t",
        "partition": 0,
        "from_offset": each.start,
        "until_offset": each.until,
        "end_offset": None,
        "commit": f"commit-{sequence}",
        "table_version": sequence,
        "table_name": "t.p",
        "topic_id": "id",
        "cluster_id": "cluster",
        **dict(zip(COUNTS, (4, 2, 1, 1) if some else (0, 0, 0, 0), strict=True)),
        **changes,
    }


GOOD = [fact(1), fact(2), fact(3)]


def verified(
    folder: Path,
    rows: Sequence[Mapping[str, Any]] | None,
    ledger: Ledger = LEDGER,
    counted: Subject | None = None,
    newest: int = 3,
    allowed: Allowed = NOTHING,
) -> Findings:
    """``newest``: the version that the log has by now."""
    tables = {} if rows is None else {"rivermouth.offsets": MemoryRows(rows, SCHEMA)}
    log = MemoryCommits([Commit({}, {})] * (newest + 1))
    findings, pipeline = Findings("p"), configured(folder).pipelines["p"]
    verify_offsets_table(MemoryTables(tables), ledger, log, pipeline, findings, counted, allowed)
    return findings


def counted(folder: Path, visible: int = 4, quarantined: int = 1, **facts: Any) -> Subject:
    asked = subject(configured(folder), MemorySource(), *ENTRIES, **facts)
    asked.coverage.spans[ZERO].visible[:] = visible
    asked.coverage.spans[ZERO].quarantined[:] = quarantined
    asked.coverage.spans[ZERO].skipped[:] = 1
    return asked


def test_a_good_table_has_nothing_wrong(tmp_path: Path) -> None:
    assert problems(verified(tmp_path, GOOD)) == ()
    assert problems(verified(tmp_path, GOOD, counted=counted(tmp_path))) == ()


CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]] | None, int, str]] = {
    "no table": (None, 3, "offsets table, sequence 1 t-0: no row"),
    "a row missing": (GOOD[:2], 1, "offsets table, sequence 3 t-0: no row"),
    "a row twice": ([*GOOD, fact(1)], 1, "offsets table, sequence 1 t-0: more than one row"),
    "a row of no entry": (
        [*GOOD, fact(9, table_version=2)],
        1,
        "offsets table, sequence 9 t-0: no such range in the ledger",
    ),
    "another end and commit": (
        [fact(1, until_offset=4, commit="x"), *GOOD[1:]],
        1,
        "offsets table, sequence 1 t-0: until_offset is 4, expected 5,"
        " commit is x, expected commit-1",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_found_with_its_row(tmp_path: Path, case: str) -> None:
    rows, number, line = CASES[case]
    findings = verified(tmp_path, rows)
    assert found(findings) == {Kind.OFFSETS_TABLE: number}
    assert problems(findings)[0] == line


@pytest.mark.parametrize("column", [*NUMBERS[2:], "commit", "table_name", "topic_id", "cluster_id"])
def test_every_column_is_compared(tmp_path: Path, column: str) -> None:
    edited = fact(2, **{column: 0 if column in NUMBERS else "other"})
    assert found(verified(tmp_path, [GOOD[0], edited, GOOD[2]])) == {Kind.OFFSETS_TABLE: 1}


@pytest.mark.parametrize("column", COUNTS)
def test_counts_are_compared_where_they_were_counted_again(tmp_path: Path, column: str) -> None:
    rows = [fact(1, **{column: 7}), *GOOD[1:]]
    assert found(verified(tmp_path, rows)) == {}
    again = verified(tmp_path, rows, counted=counted(tmp_path))
    assert found(again) == {Kind.OFFSETS_TABLE: 1}
    assert f"{column} is 7, expected" in problems(again)[0]
    expired = counted(tmp_path, readable={ZERO: (2, 9)})
    assert found(verified(tmp_path, rows, counted=expired)) == {}


def test_an_empty_range_has_no_records_whoever_counts(tmp_path: Path) -> None:
    rows = [*GOOD[:2], fact(3, records=1)]
    assert found(verified(tmp_path, rows, counted=counted(tmp_path))) == {Kind.OFFSETS_TABLE: 1}


def test_a_row_of_a_commit_that_came_since_is_right_if_the_log_has_it_by_now(
    tmp_path: Path,
) -> None:
    rows = [*GOOD, fact(4)]
    assert found(verified(tmp_path, rows, newest=4)) == {}
    findings = verified(tmp_path, rows, newest=3)
    assert found(findings) == {Kind.FAULT: 1}
    assert problems(findings) == (
        "the offsets table has a row of version 4, the table's log does not have it",
    )


RESTARTED = (entry(2, span(5, 9), accepts="reset"), ENTRIES[2])


@pytest.mark.parametrize(
    ("ledger", "faults"),
    [
        (Ledger(3, ENTRIES[1:], ENTRIES[1:]), 1),
        (Ledger(3, ENTRIES[1:], ENTRIES[1:], trimmed=True), 0),
        (Ledger(3, RESTARTED, RESTARTED), 0),
    ],
    ids=["whole", "trimmed", "restarted"],
)
def test_rows_of_older_entries_are_right_where_there_were_such_entries(
    tmp_path: Path, ledger: Ledger, faults: int
) -> None:
    findings = verified(tmp_path, GOOD, ledger)
    assert found(findings) == ({Kind.OFFSETS_TABLE: faults} if faults else {})


def test_counts_of_former_ranges_are_not_those_of_the_ranges_that_took_their_offsets(
    tmp_path: Path,
) -> None:
    """Entry 2 accepted that the topic is another one; entry 3 covers the offsets of entry 1."""
    changes = LedgerChanges(("topic",), False, frozenset({"t"}), {ZERO: (5, 0)})
    entries = (entry(1, span(0, 5)), entry(2, span(0, 0), changes=changes), entry(3, span(0, 5)))
    asked = subject(configured(tmp_path), MemorySource(), *entries)
    asked.coverage.spans[ZERO].visible[:] = 4
    asked.coverage.spans[ZERO].quarantined[:] = 1
    asked.coverage.spans[ZERO].skipped[:] = 1
    begun = {"from_offset": 0, "until_offset": 0, **dict.fromkeys(COUNTS, 0)}
    old = fact(1, records=5, applied=5, quarantined=0, skipped=0)
    rows = [old, fact(2, **begun), fact(3, **{**begun, "until_offset": 5})]
    new = dict(zip(COUNTS, (4, 2, 1, 1), strict=True))
    ledger = Ledger(3, entries, entries)
    assert problems(verified(tmp_path, [*rows[:2], {**rows[2], **new}], ledger, asked)) == ()
    assert found(verified(tmp_path, rows, ledger, asked)) == {Kind.OFFSETS_TABLE: 1}


def test_counts_of_an_entry_that_was_undone_are_not_those_of_its_range(tmp_path: Path) -> None:
    """Entry 1 was undone. By now there is another topic, of which entry 2 covers the offsets."""
    undone, again = entry(1, span(0, 5)), entry(2, span(0, 5))
    asked = subject(configured(tmp_path), MemorySource(), again)
    asked.coverage.spans[ZERO].visible[:] = 4
    asked.coverage.spans[ZERO].quarantined[:] = 1
    asked.coverage.spans[ZERO].skipped[:] = 1
    old = fact(1, from_offset=0, until_offset=5, records=5, applied=5, quarantined=0, skipped=0)
    new = fact(2, from_offset=0, until_offset=5, **dict(zip(COUNTS, (4, 2, 1, 1), strict=True)))
    ledger = Ledger(2, (again,), (undone, again))
    assert problems(verified(tmp_path, [old, new], ledger, asked)) == ()
    assert found(verified(tmp_path, [old, {**new, "records": 5}], ledger, asked)) != {}


def aged(*days: float) -> Ledger:
    """The ledger with entries that are so many days old."""
    entries = tuple(
        replace(each, committed_ms=int((100 - age) * DAY_MS))
        for each, age in zip(ENTRIES, days, strict=True)
    )
    return Ledger(3, entries, entries)


def test_old_rows_may_be_gone_where_the_configuration_says_so_and_are_counted(
    tmp_path: Path,
) -> None:
    kept = replace(NOTHING, retention_ms=10.0 * DAY_MS)
    findings = verified(tmp_path, GOOD[1:], aged(11, 5, 0), allowed=kept)
    assert problems(findings) == ()
    assert findings.proof().left == {Unchecked.PROJECTED: 1}
    assert not replace(findings.proof(), strict=True).ok
    assert found(verified(tmp_path, GOOD[1:], aged(11, 5, 0))) == {Kind.OFFSETS_TABLE: 1}
    young = verified(tmp_path, GOOD[2:], aged(11, 5, 0), allowed=kept)
    assert problems(young) == ("offsets table, sequence 2 t-0: no row",)
    newest = verified(tmp_path, [], aged(13, 12, 11), allowed=kept)
    assert problems(newest) == ("offsets table, sequence 3 t-0: no row",)
    wrong = verified(tmp_path, [fact(1, commit="x"), *GOOD[2:]], aged(13, 12, 11), allowed=kept)
    assert "sequence 1 t-0: commit is x" in problems(wrong)[0]


@pytest.mark.parametrize(
    ("age_days", "before", "waits", "left"),
    [
        (0, GOOD[:2], 1, 0),
        (0, GOOD[1:], 0, 1),
        (1, GOOD[:2], 0, 1),
        (0, GOOD, 0, 0),
    ],
    ids=["just committed", "not the newest", "long ago", "all there"],
)
def test_the_rows_of_a_commit_of_this_moment_are_waited_for(
    tmp_path: Path,
    age_days: float,
    before: Sequence[Mapping[str, Any]],
    waits: int,
    left: int,
) -> None:
    """A run writes them a moment after the commit."""
    rows, waited = [*before], []

    def wait() -> None:
        waited.append(1)
        rows[:] = GOOD

    said = verified(tmp_path, rows, aged(9, 9, age_days), allowed=replace(NOTHING, wait=wait))
    assert (len(waited), len(problems(said))) == (waits, left)
