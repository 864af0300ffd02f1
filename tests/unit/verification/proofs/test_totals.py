"""Tables of totals: the whole proof over records and rows in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.config.formats import FORMATS
from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.reader import NOT_VERIFIABLE, Reader
from rivermouth.verification.ledger.entry import Deletion, LedgerChanges, LedgerEntry, Partition
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.proofs.quarantine import Quarantined
from rivermouth.verification.proofs.totals import verify_totals
from rivermouth.verification.result import Kind, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    message,
    problems,
    quarantined,
    span,
    stored,
    subject,
    workspace,
)

pytestmark = pytest.mark.unit

HOUR = 3_600_000_000
MOST = (1 << 63) - 1
ONE: Partition = ("t", 1)
SCHEMA = pa.schema(
    [
        ("bidder", pa.string()),
        ("window_start", pa.timestamp("us", tz="UTC")),
        ("spent", pa.decimal128(16, 2)),
        ("units", pa.int64()),
        ("n", pa.int64()),
        ("named", pa.int64()),
        ("first", pa.timestamp("us", tz="UTC")),
        ("last", pa.timestamp("us", tz="UTC")),
        ("goods", pa.int64()),
        ("goods_sketch", pa.binary()),
    ]
)
TARGET: Mapping[str, Any] = {
    "mode": "aggregate",
    "schema": "bidder STRING, at TIMESTAMP, price DECIMAL(6,2), unit INT, good STRING",
    "keys": ["bidder", "window(at, '1 hour')"],
    "metrics": {
        "spent": "sum(price)",
        "units": "sum(unit)",
        "n": "count()",
        "named": "count(good)",
        "first": "min(at)",
        "last": "max(at)",
        "goods": "approx_distinct(good)",
    },
}


def value(bidder: str | None, at: str | None, price: Any = None, *more: Any) -> bytes:
    unit, good = (*more, None, None)[:2]
    facts = {"bidder": bidder, "at": at, "price": price, "unit": unit, "good": good}
    return json.dumps(facts).encode()


RECORDS = {
    ZERO: [
        message(0, value("ann", "1970-01-01T00:10:00Z", 1.5, 2, "a")),
        message(1, value("ann", "1970-01-01T00:59:59Z", None, None, "a")),
        message(2, value("ann", "1970-01-01T01:00:00Z", 2.25)),
        message(3, value("bob", "1969-12-31T23:59:00Z", 7, 1, "b")),
    ],
    ONE: [
        message(0, value("ann", "1970-01-01T00:00:00Z", 0.5, -3, "c"), partition=ONE),
        message(1, value("bob", "1969-12-31T23:00:00Z", -7, 1, "b"), partition=ONE),
    ],
}
ENTRIES = (entry(1, span(0, 2), span(0, 1, ONE)), entry(2, span(2, 4), span(1, 2, ONE)))


def row(bidder: str, window: int, *totals: Any) -> dict[str, Any]:
    names = [each for each in SCHEMA.names if not each.endswith("_sketch")]
    return dict(zip(names, (bidder, window * HOUR, *totals), strict=True))


MINUTE = HOUR // 60
ROWS = [
    row("ann", 0, Decimal("2.00"), -1, 3, 3, 0, HOUR - 1_000_000, 2),
    row("ann", 1, Decimal("2.25"), None, 1, 0, HOUR, HOUR, 0),
    row("bob", -1, Decimal("0.00"), 2, 2, 2, -HOUR, -MINUTE, 1),
]


def verified(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    quarantine: Mapping[Partition, Quarantined] | None = None,
    *,
    entries: Sequence[LedgerEntry] = ENTRIES,
    source: MemorySource | None = None,
    **facts: Any,
) -> Subject:
    config = configured(folder, **TARGET)
    asked = subject(config, source or MemorySource(RECORDS), *entries, **facts)
    held = stored(rows, quarantine, SCHEMA)
    verify_totals(asked, held, workspace(folder, Bounds(bucket=2)))
    return asked


def changed(number: int, **totals: Any) -> list[dict[str, Any]]:
    """The rows of a good run, one of them with other totals."""
    return [{**each, **totals} if at == number else each for at, each in enumerate(ROWS)]


def test_good_totals_have_nothing_wrong(tmp_path: Path) -> None:
    asked = verified(tmp_path, ROWS)
    assert (problems(asked), asked.findings.unchecked) == ((), [])
    assert asked.coverage.records() == 6


ANN = "key (ann, 1970-01-01T00:00:00.000000Z): "
CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind, str]] = {
    "no row": (ROWS[1:], Kind.MISSING, ANN + "found no row, expected the totals of 3 records"),
    "a row twice": ([*ROWS, ROWS[0]], Kind.DUPLICATED, ANN + "2 rows"),
    "a row of nobody": (
        [*ROWS, row("eve", 0, None, None, 1, 0, 0, 0, 0)],
        Kind.UNEXPECTED,
        "key (eve, 1970-01-01T00:00:00.000000Z): found a row, expected none",
    ),
    "a sum": (
        changed(0, spent=Decimal("2.01")),
        Kind.DIFFERENT,
        ANN + "spent is 2.01, expected 2.00",
    ),
    "a sum that is zero": (
        changed(1, units=0),
        Kind.DIFFERENT,
        "key (ann, 1970-01-01T01:00:00.000000Z): units is 0, expected null",
    ),
    "a sum that is null": (
        changed(2, spent=None),
        Kind.DIFFERENT,
        "key (bob, 1969-12-31T23:00:00.000000Z): spent is null, expected 0.00",
    ),
    "a batch counted twice": (changed(0, n=6), Kind.DIFFERENT, ANN + "n is 6, expected 3"),
    "nulls counted": (
        changed(1, named=1),
        Kind.DIFFERENT,
        "key (ann, 1970-01-01T01:00:00.000000Z): named is 1, expected 0",
    ),
    "a least value": (
        changed(0, first=1),
        Kind.DIFFERENT,
        ANN + "first is 1970-01-01T00:00:00.000001Z, expected 1970-01-01T00:00:00.000000Z",
    ),
    "a greatest value": (
        changed(0, last=None),
        Kind.DIFFERENT,
        ANN + "last is null, expected 1970-01-01T00:59:59.000000Z",
    ),
    "an estimate": (changed(0, goods=4), Kind.DIFFERENT, ANN + "goods is 4, expected 2"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_found_with_its_key_and_metric(tmp_path: Path, case: str) -> None:
    rows, kind, line = CASES[case]
    asked = verified(tmp_path, rows)
    assert problems(asked) == (line,)
    assert found(asked) == {kind: 1}


def test_every_metric_that_differs_is_named(tmp_path: Path) -> None:
    assert found(verified(tmp_path, changed(0, n=4, units=0))) == {Kind.DIFFERENT: 2}


def test_another_window_is_a_missing_row_and_an_unexpected_one(tmp_path: Path) -> None:
    asked = verified(tmp_path, changed(2, window_start=0))
    assert found(asked) == {Kind.MISSING: 1, Kind.UNEXPECTED: 1}


@pytest.mark.parametrize(
    "bad",
    [
        value(None, "1970-01-01T00:00:00Z"),
        value("ann", None),
        value("ann", "1970-01-01T00:00:00Z", "x"),
        value("ann", "-290308-12-21T19:59:05.224192Z"),
        None,
        b"",
    ],
    ids=["no key", "no time", "no price", "no window", "no value", "empty"],
)
def test_a_bad_record_belongs_in_quarantine_and_adds_nothing(
    tmp_path: Path, bad: bytes | None
) -> None:
    records = {**RECORDS, ZERO: [*RECORDS[ZERO], message(4, bad)]}
    entries = (*ENTRIES, entry(3, span(4, 5)))
    source = MemorySource(records)
    asked = verified(tmp_path, ROWS, {ZERO: held(records, 4)}, entries=entries, source=source)
    assert (problems(asked), asked.findings.unchecked) == ((), [])
    without = verified(tmp_path, ROWS, entries=entries, source=source)
    assert found(without) == {Kind.DIFFERENT: 1}
    assert "not in quarantine, but verify cannot decode it" in problems(without)[0]


def held(
    records: Mapping[Partition, Sequence[Any]], *offsets: int, large: bool = False
) -> Quarantined:
    """Offsets in quarantine, with the bytes that Kafka has."""
    return quarantined(*(records[ZERO][each] for each in offsets), large=large)


def test_a_good_record_in_quarantine_is_a_fault_and_a_null_price_is_good(tmp_path: Path) -> None:
    rows = changed(0, n=2, named=2, last=10 * MINUTE)
    asked = verified(tmp_path, rows, {ZERO: held(RECORDS, 1)})
    assert problems(asked) == ("t-0@1: in quarantine, but the record can be decoded",)


WIDE = {
    "mode": "aggregate",
    "schema": "id INT, a BIGINT, b DECIMAL(38,0)",
    "keys": ["id"],
    "metrics": {"a": "sum(a)", "b": "sum(b)", "n": "count()"},
}
WIDE_SCHEMA = pa.schema(
    [("id", pa.int32()), ("a", pa.int64()), ("b", pa.decimal128(37, 0)), ("n", pa.int64())]
)


def wide(a: int | None, b: int | None = None, key: int = 1) -> bytes:
    return json.dumps({"id": key, "a": a, "b": b}).encode()


Batches = Sequence[Sequence[bytes]]
Total = tuple[Any, Any, int]
OVERFLOWS: Mapping[str, tuple[Batches, set[int], Total | None]] = {
    "all fit": ([[wide(MOST - 1), wide(1)]], set(), (MOST, None, 2)),
    "one value more": ([[wide(MOST)], [wide(1)]], {1}, (MOST, None, 1)),
    "the whole key of the batch": ([[wide(MOST)], [wide(-5), wide(9)]], {1, 2}, (MOST, None, 1)),
    "a key of a batch alone": ([[wide(MOST), wide(1)]], {0, 1}, None),
    "a batch alone, though the total would fit": (
        [[wide(-5)], [wide(MOST), wide(1)]],
        {1, 2},
        (-5, None, 1),
    ),
    "the order in a batch does not matter": (
        [[wide(MOST), wide(1), wide(-1)]],
        set(),
        (MOST, None, 3),
    ),
    "a later batch that fits again": (
        [[wide(MOST)], [wide(1)], [wide(-1)]],
        {1},
        (MOST - 1, None, 2),
    ),
    "downwards": ([[wide(-MOST - 1)], [wide(-1)]], {1}, (-MOST - 1, None, 1)),
    "a decimal": ([[wide(1, 10**37 - 1)], [wide(1, 1)]], {1}, (1, Decimal("9" * 37), 1)),
    "one value that is too large alone": ([[wide(1, 10**37)], [wide(2)]], {0}, (2, None, 1)),
    "nulls": ([[wide(None)], [wide(MOST)], [wide(None)]], set(), (MOST, None, 3)),
}


def overflowing(
    folder: Path, batches: Batches, large: set[int], total: Total | None, **facts: Any
) -> Subject:
    values = [each for batch in batches for each in batch]
    records = {ZERO: [message(at, each) for at, each in enumerate(values)]}
    ends = np.cumsum([0, *map(len, batches)]).tolist()
    entries = [entry(n, span(*ends)) for n, ends in enumerate(pairwise(ends), 1)]
    config = configured(folder, **WIDE)
    asked = subject(config, MemorySource(records), *entries, **facts)
    rows = [] if total is None else [dict(zip(WIDE_SCHEMA.names, (1, *total), strict=True))]
    quarantine = {ZERO: held(records, *sorted(large), large=True)}
    verify_totals(asked, stored(rows, quarantine, WIDE_SCHEMA), workspace(folder))
    return asked


@pytest.mark.parametrize("case", OVERFLOWS)
def test_records_that_would_leave_the_type_of_a_sum_are_in_quarantine(
    tmp_path: Path, case: str
) -> None:
    asked = overflowing(tmp_path, *OVERFLOWS[case])
    assert (problems(asked), asked.findings.unchecked) == ((), [])


SPOILT: Mapping[str, tuple[Batches, set[int], Total | None, Kind, str]] = {
    "a wide decimal that fits in any order": (
        [[wide(1, 9 * 10**36)]],
        {0},
        None,
        Kind.QUARANTINE,
        "key 1, entry 1: 1 record in quarantine as too large, but the totals fit",
    ),
    "it fits": (
        [[wide(1)], [wide(2)]],
        {1},
        (1, None, 1),
        Kind.QUARANTINE,
        "key 1, entry 2: 1 record in quarantine as too large, but the totals fit",
    ),
    "one of the batch is missing there": (
        [[wide(MOST)], [wide(-5), wide(9)]],
        {2},
        (MOST - 5, None, 2),
        Kind.FAULT,
        "key 1, entry 2: 1 record not in quarantine, but too large for a",
    ),
    "none is there": (
        [[wide(MOST, 10**37)], [wide(1)]],
        {1},
        (MOST, Decimal(10) ** 36, 1),
        Kind.FAULT,
        "key 1, entry 1: 1 record not in quarantine, but too large for b",
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_any_other_record_in_quarantine_as_too_large_is_found(tmp_path: Path, case: str) -> None:
    batches, large, total, kind, line = SPOILT[case]
    asked = overflowing(tmp_path, batches, large, total)
    assert found(asked)[kind] == 1
    assert line in problems(asked)


def test_nobody_judges_wide_decimals_whose_sum_may_not_fit_on_the_way(tmp_path: Path) -> None:
    batches = [[wide(1, each) for each in (6 * 10**37, -6 * 10**37, 5)]]
    asked = overflowing(tmp_path, batches, {0, 1, 2}, None)
    assert (problems(asked), found(asked)) == ((), {})
    assert asked.findings.proof().left == {Unchecked.VERDICTS: 3}


def test_other_keys_of_the_batch_count(tmp_path: Path) -> None:
    batches = [[wide(MOST)], [wide(1), wide(4, key=2)]]
    assert found(overflowing(tmp_path, batches, {1}, (MOST, None, 1))) == {Kind.MISSING: 1}
    assert found(overflowing(tmp_path, batches, {1, 2}, (MOST, None, 1))) == {Kind.QUARANTINE: 1}


EXPIRED = {ZERO: (2, 4), ONE: (0, 2)}
GROWN = changed(1, spent=Decimal(9), units=1, n=2, named=1, first=0, goods=3)
LESS: Mapping[str, tuple[Sequence[Mapping[str, Any]], dict[Kind, int], int]] = {
    "the totals": (ROWS, {}, 3),
    "more of all": (GROWN, {}, 3),
    "a row whose records have all expired": (
        [*ROWS, row("eve", 0, None, 1, 9, 0, 0, 0, 0)],
        {},
        4,
    ),
    "fewer than are visible": (changed(2, n=1), {Kind.DIFFERENT: 1}, 2),
    "a least value above one that is visible": (changed(2, first=0), {Kind.DIFFERENT: 1}, 2),
    "no row of a visible record": (ROWS[:2], {Kind.MISSING: 1}, 2),
}


@pytest.mark.parametrize("case", LESS)
def test_where_records_expired_only_what_cannot_be_is_wrong(tmp_path: Path, case: str) -> None:
    rows, wrong, keys = LESS[case]
    asked = verified(tmp_path, rows, readable=EXPIRED)
    assert found(asked) == wrong
    assert asked.findings.unchecked == [
        f"{keys} keys: the totals cannot be compared:"
        " Kafka no longer holds all records of the entries up to 1"
    ]


THINNED = {**RECORDS, ONE: RECORDS[ONE][:1]}


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"trimmed": True}, "log clean-up removed entries"),
        ({"shared": frozenset({"other"})}, "other pipelines add to the same rows"),
        (
            {"source": MemorySource(THINNED, compacted=frozenset({"t"}))},
            "compaction may have removed records of t",
        ),
        (
            {"source": MemorySource(THINNED, unknown_policy=frozenset({"t"}))},
            "compaction may have removed records of t",
        ),
    ],
)
def test_what_else_makes_totals_unknown_is_said(
    tmp_path: Path, facts: Mapping[str, Any], why: str
) -> None:
    asked = verified(tmp_path, changed(0, units=7), **facts)
    assert found(asked) == {}
    assert asked.findings.unchecked == [f"3 keys: the totals cannot be compared: {why}"]


@pytest.mark.parametrize(
    "facts", [{"compacted": frozenset({"t"})}, {"unknown_policy": frozenset({"t"})}], ids=str
)
@pytest.mark.parametrize(
    ("rows", "wrong"),
    [(ROWS, {}), (changed(0, units=7), {Kind.DIFFERENT: 1})],
    ids=["right", "not"],
)
def test_totals_are_compared_where_compaction_has_removed_no_record_yet(
    tmp_path: Path,
    facts: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    wrong: dict[Kind, int],
) -> None:
    asked = verified(tmp_path, rows, source=MemorySource(RECORDS, **facts))
    assert (found(asked), asked.findings.unchecked) == (wrong, [])


def test_too_large_records_cannot_be_judged_where_totals_are_unknown(tmp_path: Path) -> None:
    asked = overflowing(tmp_path, [[wide(1)], [wide(2)]], {1}, (1, None, 1), trimmed=True)
    assert found(asked) == {}
    assert asked.findings.proof().left == {Unchecked.KEYS: 1, Unchecked.VERDICTS: 1}


def vague(schema: pa.Schema, columns: Sequence[str], settings: Mapping[str, Any]) -> Reader:
    """Reads JSON, but cannot tell a time without a date."""
    read = reader(schema, columns, settings)
    times = [pa.types.is_timestamp(schema.field(each).type) for each in columns]

    def told(value: bytes) -> tuple[Any, ...]:
        found = read(value.replace(NO_DATE, b"null"))
        if NO_DATE not in value:
            return found
        pairs = zip(found, times, strict=True)
        return tuple(NOT_VERIFIABLE if time else each for each, time in pairs)

    return told


NO_DATE = b'"10:00"'


@pytest.fixture
def _vague(monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(FORMATS.by_name["json"], reader=f"{__name__}:{vague.__name__}")
    monkeypatch.setitem(FORMATS.by_name, "json", known)


@pytest.mark.usefixtures("_vague")
def test_no_record_is_judged_to_be_too_large_beside_one_of_an_unknown_key(tmp_path: Path) -> None:
    target = {**WIDE, "keys": ["day"], "schema": "day TIMESTAMP, a BIGINT, b BIGINT"}
    told, untold = [
        json.dumps({"day": at, "a": 1}).encode() for at in ("1970-01-01T00:00Z", "10:00")
    ]
    records = {ZERO: [message(0, told), message(1, told), message(2, untold)]}
    asked = subject(
        configured(tmp_path, **target),
        MemorySource(records),
        entry(1, span(0, 1)),
        entry(2, span(1, 3)),
    )
    schema = pa.schema([("day", pa.timestamp("us", tz="UTC")), *[*WIDE_SCHEMA][1:]])
    rows = [{"day": 0, "a": 1, "b": None, "n": 1}]
    quarantine = {ZERO: held(records, 1, 2, large=True)}
    verify_totals(asked, stored(rows, quarantine, schema), workspace(tmp_path))
    assert found(asked) == {}
    assert asked.findings.proof().left == {Unchecked.VERDICTS: 1}


def test_where_an_accepted_change_left_former_records_that_is_said(tmp_path: Path) -> None:
    moved = {ZERO: (2, 0), ONE: (1, 0)}
    changes = LedgerChanges(("topic",), cluster=False, other=frozenset({"t"}), moved=moved)
    accepted = entry(2, changes=changes, accepted=(("topic", 2),))
    entries = (ENTRIES[0], accepted, entry(3, span(0, 4), span(0, 2, ONE)))
    asked = verified(tmp_path, changed(0, n=9), entries=entries)
    assert found(asked) == {}
    assert asked.findings.unchecked == [
        "3 keys: the totals cannot be compared: an operator accepted a change of the source"
    ]


@pytest.mark.usefixtures("_vague")
def test_a_record_of_a_key_that_cannot_be_told_excuses_differences_and_no_lack(
    tmp_path: Path,
) -> None:
    records = {**RECORDS, ZERO: [*RECORDS[ZERO], message(4, value("ann", "10:00", 1))]}
    entries = (*ENTRIES, entry(3, span(4, 5)))
    source = MemorySource(records)

    def left(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[Kind, int], dict[Unchecked, int]]:
        asked = verified(tmp_path, rows, entries=entries, source=source)
        return found(asked), asked.findings.proof().left

    assert left(ROWS) == ({}, {Unchecked.VALUES: 1})
    assert left(changed(0, n=4)) == ({}, {Unchecked.VALUES: 1, Unchecked.KEYS: 1})
    assert left(changed(0, n=2)) == ({Kind.DIFFERENT: 1}, {Unchecked.VALUES: 1})
    assert left(ROWS[1:]) == ({Kind.MISSING: 1}, {Unchecked.VALUES: 1})


def test_a_column_that_was_added_later_is_null_before(tmp_path: Path) -> None:
    told = replace(ENTRIES[1], columns=("bidder", "at", "price", "unit"))
    asked = verified(tmp_path, changed(2, named=0, goods=0), entries=(ENTRIES[0], told))
    assert problems(asked) == ()


def test_rows_that_were_deleted_on_purpose_leave_nothing_to_compare(tmp_path: Path) -> None:
    deleting = replace(ENTRIES[1], deletes=(Deletion(1, {}, unlisted=1),))
    asked = verified(tmp_path, ROWS[1:], entries=(ENTRIES[0], deleting))
    assert found(asked) == {}
    assert asked.findings.unchecked == [
        "3 keys: the totals cannot be compared: rows were deleted on purpose"
    ]


def test_a_table_without_the_columns_cannot_be_read(tmp_path: Path) -> None:
    asked = subject(configured(tmp_path, **TARGET), MemorySource(RECORDS), *ENTRIES)
    without = stored([], schema=SCHEMA.remove(SCHEMA.get_field_index("n")))
    with pytest.raises(Unreadable, match="it lacks the columns n"):
        verify_totals(asked, without, workspace(tmp_path))


def test_records_are_put_together_however_early_they_are_written_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_GROUPS", "_HASHES"):
        monkeypatch.setattr(f"rivermouth.verification.proofs.total_check.{name}", 1)
    assert problems(verified(tmp_path, ROWS)) == ()
