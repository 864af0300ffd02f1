"""Tables of the newest and of the first row per key: the whole proof, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.formats import FORMATS, Format
from rivermouth.verification.formats.reader import NOT_VERIFIABLE, Reader
from rivermouth.verification.ledger.entry import Deletion, LedgerChanges, LedgerEntry, Partition
from rivermouth.verification.ledger.erased import Erased
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs import proof
from rivermouth.verification.proofs.keyed import verify_first, verify_latest
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.result import Kind, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    SCHEMA,
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

KEYED: Mapping[str, Any] = {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}
RECORDS = [
    message(0, value(1, 5)),
    message(1, value(1, 3)),  # lower
    message(2, value(2, 1)),
    message(3, None, b"2"),
    message(4, value(3, 1)),
    message(5, value(3, 1)),  # a tie: the later offset wins
    message(6, value(4, None)),
    message(7, value(4, -9)),  # null is lowest
]
ENTRIES = (entry(1, span(0, 3)), entry(2, span(3, 8)))
ROWS = [row(1, 5, 0), row(3, 1, 5), row(4, -9, 7)]
SOFT = SCHEMA.append(pa.field("_tombstone", pa.bool_()))


def verified(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    records: Sequence[Any] = RECORDS,
    schema: pa.Schema = SCHEMA,
    **target: Any,
) -> Subject:
    config = configured(folder, **{"key": "string", **KEYED, **target})
    asked = subject(config, MemorySource({ZERO: records}), *ENTRIES)
    verify_latest(asked, stored(rows, schema=schema), workspace(folder, Bounds(bucket=2)))
    return asked


def test_a_good_table_has_nothing_wrong_and_says_how_many_records_were_replaced(
    tmp_path: Path,
) -> None:
    asked = verified(tmp_path, ROWS)
    assert (found(asked), asked.findings.unchecked) == ({}, [])
    assert (asked.coverage.records(), asked.findings.superseded) == (8, 5)


def test_a_bucket_that_has_become_too_large_is_split_and_every_key_is_still_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "_BUCKETS_MAX", 2)
    records = [message(each, value(each, 1)) for each in range(60)]
    rows = [row(each, 1, each) for each in range(60)]
    largest = 0
    by_bucket = proof.Pairing._by_bucket

    def counted(pairing: proof.Pairing) -> Iterator[tuple[proof.Items, proof.Items]]:
        nonlocal largest
        for changes, held in by_bucket(pairing):
            its_changes, its_rows = [*changes], [*held]
            largest = max(largest, len(its_changes) + len(its_rows))
            yield iter(its_changes), iter(its_rows)

    monkeypatch.setattr(proof.Pairing, "_by_bucket", counted)
    config = configured(tmp_path, **KEYED)
    asked = subject(config, MemorySource({ZERO: records}), entry(1, span(0, 60)))
    verify_latest(asked, stored(rows[1:]), workspace(tmp_path, Bounds(bucket=2)))
    assert found(asked) == {Kind.MISSING: 1}
    assert largest < 30, "two buckets hold 60 each"


CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind, str]] = {
    "no row": (ROWS[1:], Kind.MISSING, "key 1: found no row, expected the row of t-0@0"),
    "two rows": (
        [*ROWS, row(1, 3, 1)],
        Kind.DUPLICATED,
        "key 1: 2 rows, from t-0@0, t-0@1",
    ),
    "an older row": (
        [row(1, 3, 1), *ROWS[1:]],
        Kind.DIFFERENT,
        "key 1: found the row of t-0@1, expected the row of t-0@0",
    ),
    "a deleted row": (
        [*ROWS, row(2, 1, 2)],
        Kind.UNEXPECTED,
        "key 2: found the row of t-0@2, expected no row",
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
    "a row without coordinates": (
        [*ROWS, row(9, 9, None)],
        Kind.UNEXPECTED,
        "1 row without Kafka coordinates",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_found_with_its_key(tmp_path: Path, case: str) -> None:
    rows, kind, line = CASES[case]
    asked = verified(tmp_path, rows)
    assert found(asked) == {kind: 1}
    assert problems(asked) == (line,)


def test_a_softly_deleted_row_is_no_row(tmp_path: Path) -> None:
    rows = [{**each, "_tombstone": None} for each in ROWS]
    deleted = {**row(2, 1, 2), "_tombstone": True}
    assert found(verified(tmp_path, [*rows, deleted], schema=SOFT)) == {}
    assert found(verified(tmp_path, [*rows, {**deleted, "_tombstone": None}], schema=SOFT)) == {
        Kind.UNEXPECTED: 1
    }


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (message(3, b"{"), "not JSON"),
        (message(3, b"{}"), "it has none of the fields of the schema"),
        (message(3, b'{"n":1}'), "a key column is null"),
        (message(3, b""), "the value is empty"),
        (message(3, None, None), "there is no message key"),
        (message(3, None, b"x"), "a message key that is not int64: 'x'"),
    ],
)
def test_a_good_record_that_verify_cannot_decode_is_a_difference(
    tmp_path: Path, record: Any, why: str
) -> None:
    asked = verified(tmp_path, ROWS, [*RECORDS[:2], record, *RECORDS[4:]])
    assert found(asked) == {Kind.DIFFERENT: 1}
    [line] = problems(asked)
    assert line.startswith("t-0@3: not in quarantine, but verify cannot decode it: ")
    assert why in line


def test_without_a_form_of_keys_a_null_value_is_no_tombstone(tmp_path: Path) -> None:
    config = configured(tmp_path, **KEYED)
    asked = subject(config, MemorySource({ZERO: RECORDS[:4]}), entry(1, span(0, 4)))
    verify_latest(asked, stored([ROWS[0], row(2, 1, 2)]), workspace(tmp_path))
    assert problems(asked) == (
        "t-0@3: not in quarantine, but verify cannot decode it: the value is null",
    )


def test_a_winner_whose_other_columns_verify_cannot_decode_is_a_difference(
    tmp_path: Path,
) -> None:
    records = [message(0, b'{"id":1,"n":"x"}')]
    asked = subject(
        configured(tmp_path, mode="upsert", keys=["id"]),
        MemorySource({ZERO: records}),
        entry(1, span(0, 1)),
    )
    verify_latest(asked, stored([row(1, 1, 0)]), workspace(tmp_path))
    assert found(asked) == {Kind.DIFFERENT: 1}
    assert "cannot decode it: not int64: 'x'" in problems(asked)[0]


def vague(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """A reader that cannot tell the order column."""
    return lambda value: tuple(7 if name == "id" else NOT_VERIFIABLE for name in columns)


def test_a_key_or_order_column_must_be_verifiable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by = f"{__name__}:{vague.__name__}"
    monkeypatch.setitem(FORMATS.by_name, "json", Format("json", "none:none", made_by, {}))
    asked = subject(
        configured(tmp_path, **KEYED), MemorySource({ZERO: RECORDS[:1]}), entry(1, span(0, 1))
    )
    verify_latest(asked, stored([]), workspace(tmp_path))
    assert (found(asked), asked.findings.proof().left) == ({}, {Unchecked.VALUES: 1})


def test_a_table_without_the_columns_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="it lacks the columns _kafka, n"):
        verified(tmp_path, [], schema=pa.schema([("id", pa.int64())]))


# The first row of each key


ONE: Partition = ("t", 1)
FIRST_RECORDS = {
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
FIRST_ENTRIES = (entry(1, span(0, 2), span(0, 1, ONE)), entry(2, span(2, 5), span(1, 2, ONE)))
FIRST_ROWS = [row(1, 5, 0), row(2, 8, 0, ONE), row(3, 1, 3)]


def first(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    entries: Sequence[LedgerEntry] = FIRST_ENTRIES,
    source: MemorySource | None = None,
    **facts: Any,
) -> Subject:
    config = configured(folder, mode="insert", keys=["id"])
    asked = subject(config, source or MemorySource(FIRST_RECORDS), *entries, **facts)
    verify_first(asked, stored(rows), workspace(folder, Bounds(bucket=2)))
    return asked


def test_a_good_table_of_first_rows_says_how_many_records_were_repeats(
    tmp_path: Path,
) -> None:
    asked = first(tmp_path, FIRST_ROWS)
    assert (problems(asked), asked.findings.unchecked) == ((), [])
    proof = asked.findings.proof()
    assert (proof.repeated, proof.superseded) == (4, None)
    assert proof.as_dict()["repeated"] == 4
    assert "superseded" not in proof.as_dict()


FIRST_CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind, str]] = {
    "no row": (FIRST_ROWS[1:], Kind.MISSING, "key 1: found no row, expected the row of t-0@0"),
    "the repeat in its place": (
        [row(1, 9, 1), *FIRST_ROWS[1:]],
        Kind.DIFFERENT,
        "key 1: found the row of t-0@1, expected the row of t-0@0",
    ),
    "the repeat beside it": (
        [*FIRST_ROWS, row(1, 9, 1)],
        Kind.DUPLICATED,
        "key 1: 2 rows, from t-0@0, t-0@1",
    ),
    "the record of a later entry": (
        [FIRST_ROWS[0], row(2, 1, 2), FIRST_ROWS[2]],
        Kind.DIFFERENT,
        "key 2: found the row of t-0@2, expected the row of t-1@0",
    ),
    "the record of a higher partition": (
        [*FIRST_ROWS[:2], row(3, 2, 1, ONE)],
        Kind.DIFFERENT,
        "key 3: found the row of t-1@1, expected the row of t-0@3",
    ),
}


@pytest.mark.parametrize("case", FIRST_CASES)
def test_another_row_than_the_first_is_found_with_its_key(tmp_path: Path, case: str) -> None:
    rows, kind, line = FIRST_CASES[case]
    asked = first(tmp_path, rows)
    assert (found(asked), problems(asked)) == ({kind: 1}, (line,))


EXPIRED = {ZERO: (1, 5), ONE: (0, 2)}
"""The first record of key 1 is gone: the second one is the first that is visible."""
EARLIER: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind | None, int]] = {
    "the row of the record that is gone": (FIRST_ROWS, None, 1),
    "of the first one that is visible": ([row(1, 9, 1), *FIRST_ROWS[1:]], None, 0),
    "of a later one": ([row(1, 7, 4), *FIRST_ROWS[1:]], Kind.DIFFERENT, 0),
    "none": (FIRST_ROWS[1:], Kind.MISSING, 0),
}


@pytest.mark.parametrize("case", EARLIER)
def test_where_records_expired_an_earlier_row_may_stand_and_neither_none_nor_a_later_one(
    tmp_path: Path, case: str
) -> None:
    rows, kind, unchecked = EARLIER[case]
    asked = first(tmp_path, rows, readable=EXPIRED)
    assert found(asked) == ({} if kind is None else {kind: 1})
    assert asked.findings.proof().left.get(Unchecked.KEYS, 0) == unchecked


def test_an_earlier_row_may_be_of_a_record_that_compaction_removed(tmp_path: Path) -> None:
    records = {**FIRST_RECORDS, ZERO: FIRST_RECORDS[ZERO][1:]}
    source = MemorySource(records, compacted=frozenset({"t"}))
    assert first(tmp_path, FIRST_ROWS, source=source).findings.proof().left == {Unchecked.KEYS: 1}
    aborted = replace(source, aborted=frozenset({(ZERO, 0)}))
    assert found(first(tmp_path, FIRST_ROWS, source=aborted)) == {Kind.DIFFERENT: 1}


def test_the_first_row_may_be_of_an_earlier_topic_of_that_name(tmp_path: Path) -> None:
    """The offset is the same, the record another one: then the values tell nothing."""
    moved = {ZERO: (2, 0), ONE: (1, 0)}
    changes = LedgerChanges(("topic",), cluster=False, other=frozenset({"t"}), moved=moved)
    accepted = entry(2, changes=changes, accepted=(("topic", 2),))
    entries = (FIRST_ENTRIES[0], accepted, entry(3, span(0, 5), span(0, 2, ONE)))
    rows = [row(1, 77, 0), *FIRST_ROWS[1:]]
    asked = first(tmp_path, rows, entries=entries)
    assert found(asked) == {}
    assert asked.findings.proof().left[Unchecked.FORMER] >= 1


def test_after_an_accepted_delete_the_next_record_is_the_first(tmp_path: Path) -> None:
    taken = entry(2, version=4, deletes=(Deletion(3, {ZERO: ((0, 1),)}),))
    entries = (FIRST_ENTRIES[0], taken, replace(FIRST_ENTRIES[1], version=5, sequence=3))
    rows = [row(1, 7, 4), *FIRST_ROWS[1:]]
    config = configured(tmp_path, mode="insert", keys=["id"])
    asked = subject(config, MemorySource(FIRST_RECORDS), *entries)
    known = asked.ledger.effective
    ledger = Ledger(5, known, known, deletes={3: 1})
    erased = Erased(ledger, asked.coverage, asked.findings)
    asked = replace(asked, ledger=ledger, erased=erased)
    verify_first(asked, stored(rows), workspace(tmp_path))
    assert problems(asked) == ()
    assert erased.rows == 1
