"""Tables of the newest row per key: the whole proof over records and rows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.registry import FORMATS, Format
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, Reader
from rivermouth.verify.proofs import keyed, proof
from rivermouth.verify.proofs.keyed import verify_latest
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.result import Kind, Unchecked
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.ports import Unreadable
from tests.unit.verify.doubles import (
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
    check = keyed._check_bucket

    def counted(checks: Any, changes: Any, held: Any) -> None:
        nonlocal largest
        its_changes, its_rows = [*changes], [*held]
        largest = max(largest, len(its_changes) + len(its_rows))
        check(checks, iter(its_changes), iter(its_rows))

    monkeypatch.setattr(keyed, "_check_bucket", counted)
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
        (message(3, b"{}"), "a key column is null"),
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
