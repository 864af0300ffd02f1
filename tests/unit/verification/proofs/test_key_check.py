"""One key: when what the table holds is wrong, and when nobody can say so any more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verification.ledger.entry import Partition
from rivermouth.verification.proofs.decoding import Comparison, EntryReaders
from rivermouth.verification.proofs.key_check import KeyCheck, shown_key
from rivermouth.verification.proofs.key_rules import Change, Row, UnknownKeys
from rivermouth.verification.proofs.keyed import Latest
from rivermouth.verification.proofs.replay import Doubts
from rivermouth.verification.result import Kind
from rivermouth.verification.subject import Subject
from tests.unit.verification.doubles import (
    KAFKA,
    SCHEMA,
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    span,
    subject,
    value,
)

pytestmark = pytest.mark.unit

ENTRIES = (entry(1, span(0, 10)), entry(2, span(10, 20)))
LOW, HIGH = 1, 9
NOTHING = UnknownKeys()


def change(offset: int, n: int, entry: int = 1) -> Change:
    return Change(entry, ZERO, offset, (n,), 5000, value(1, n))


def tombstone(offset: int, entry: int = 1) -> Change:
    return Change(entry, ZERO, offset, (), 5000, None)


def held(offset: int, n: int, partition: Partition = ZERO) -> Row:
    return Row(partition, offset, (1, n), 5000)


def a_check(
    asked: Subject, columns: Sequence[str], folder: Path, unknown: UnknownKeys = NOTHING
) -> KeyCheck:
    comparison = Comparison(columns)
    readers = EntryReaders(asked, SCHEMA, columns)
    return KeyCheck(
        asked, comparison, readers, Latest(ordered=True), Doubts(folder / "doubts"), unknown
    )


def checked(
    folder: Path,
    changes: Sequence[Change],
    rows: Sequence[Row],
    source: MemorySource | None = None,
    unknown: UnknownKeys = NOTHING,
    **facts: Any,
) -> tuple[Subject, KeyCheck]:
    config = configured(folder, mode="upsert", keys=["id"], order_by=["n"])
    asked = subject(config, source or MemorySource(), *ENTRIES, **facts)
    columns = ["id", "n"]
    check = a_check(asked, columns, folder, unknown)
    check.check((1,), changes, rows)
    check.settle()
    return asked, check


def verdict(folder: Path, *of: Any, **facts: Any) -> Kind | str:
    """The one finding, ``not verifiable``, or ``right``."""
    asked, check = checked(folder, *of, **facts)
    kinds = [*found(asked)]
    assert len(kinds) + check.not_verifiable <= 1
    return kinds[0] if kinds else "not verifiable" if check.not_verifiable else "right"


EXPIRED = {ZERO: (5, 20)}
"""What Kafka still holds: the first entry is no longer whole."""


@pytest.mark.parametrize(
    ("changes", "rows", "whole", "expired"),
    [
        # The row that the rule leaves is right, whatever has expired.
        ([change(12, LOW)], [held(12, LOW)], "right", "right"),
        # A row of a record that expired may be right where it ranks higher, …
        ([change(12, LOW)], [held(2, HIGH)], Kind.DIFFERENT, "not verifiable"),
        ([], [held(2, HIGH)], Kind.UNEXPECTED, "not verifiable"),
        # … and one that ranks lower cannot be, after a later and higher record.
        ([change(12, HIGH)], [held(2, LOW)], Kind.DIFFERENT, Kind.DIFFERENT),
        # A record of the entry that is no longer whole may have been replaced or deleted in it.
        ([change(7, HIGH, 0)], [held(2, LOW)], Kind.DIFFERENT, "not verifiable"),
        ([change(7, HIGH, 0)], [], Kind.MISSING, "not verifiable"),
        # So may a row of that entry: a tombstone that expired may have deleted the higher one.
        (
            [change(6, HIGH, 0), change(7, LOW, 0)],
            [held(7, LOW)],
            Kind.DIFFERENT,
            "not verifiable",
        ),
        ([change(12, LOW)], [], Kind.MISSING, Kind.MISSING),
        # After a tombstone in a whole entry nothing of before counts.
        ([tombstone(11)], [held(2, HIGH)], Kind.UNEXPECTED, Kind.UNEXPECTED),
        ([tombstone(11), change(12, LOW)], [], Kind.MISSING, Kind.MISSING),
        ([], [held(12, LOW)], Kind.UNEXPECTED, Kind.UNEXPECTED),
    ],
)
def test_a_key_is_wrong_only_where_no_expired_record_can_explain_it(
    tmp_path: Path,
    changes: Sequence[Change],
    rows: Sequence[Row],
    whole: Kind | str,
    expired: Kind | str,
) -> None:
    assert verdict(tmp_path, changes, rows) == whole
    assert verdict(tmp_path, changes, rows, readable=EXPIRED) == expired


def test_trimmed_entries_may_have_left_a_row_of_before(tmp_path: Path) -> None:
    before = held(3, HIGH, ("t", 1))
    trimmed = {"trimmed": True}
    assert verdict(tmp_path, [], [before]) == Kind.UNEXPECTED
    first = (entry(5, span(0, 10), position={ZERO: 10, ("t", 1): 4}),)
    config = configured(tmp_path, mode="upsert", keys=["id"], order_by=["n"])
    asked = subject(config, MemorySource(), *first, **trimmed)
    check = a_check(asked, ["id", "n"], tmp_path)
    check.check((1,), [], [before])
    assert (found(asked), check.not_verifiable) == ({}, 1)


def test_a_higher_row_may_be_of_a_record_that_compaction_removed(tmp_path: Path) -> None:
    compacted = MemorySource(compacted=frozenset({"t"}))
    rows, changes = [held(12, HIGH)], [change(13, LOW)]
    assert verdict(tmp_path, changes, rows, compacted) == "not verifiable"
    assert compacted.asked == [(ZERO, 12)]
    aborted = MemorySource(compacted=frozenset({"t"}), aborted=frozenset({(ZERO, 12)}))
    assert verdict(tmp_path, changes, rows, aborted) == Kind.DIFFERENT
    assert verdict(tmp_path, [change(13, HIGH)], [held(12, LOW)], compacted) == Kind.DIFFERENT
    assert verdict(tmp_path, [], [held(99, HIGH)], compacted) == Kind.UNEXPECTED


def test_a_record_of_unknown_key_may_have_left_its_own_row_and_no_other(tmp_path: Path) -> None:
    unknown = UnknownKeys({(ZERO, 12)})
    rows = [held(12, HIGH)]
    assert verdict(tmp_path, [change(13, LOW)], rows, unknown=unknown) == "not verifiable"
    assert verdict(tmp_path, [change(13, LOW)], [held(14, HIGH)], unknown=unknown) == Kind.DIFFERENT
    assert verdict(tmp_path, [change(13, LOW)], [], unknown=unknown) == Kind.MISSING
    deletes = UnknownKeys({(ZERO, 12)}, deletes=True)
    assert verdict(tmp_path, [change(13, LOW)], [], unknown=deletes) == "not verifiable"


def test_what_other_pipelines_may_have_written_is_left_to_them(tmp_path: Path) -> None:
    shared = {"shared": frozenset({"other"})}
    theirs = held(3, LOW, ("other", 0))
    assert verdict(tmp_path, [], [theirs], **shared) == "right"
    assert verdict(tmp_path, [change(12, LOW)], [theirs], **shared) == "not verifiable"
    assert verdict(tmp_path, [change(12, LOW)], [], **shared) == "not verifiable"
    assert verdict(tmp_path, [change(12, LOW)], [held(11, LOW)], **shared) == Kind.DIFFERENT


def test_another_pipeline_may_have_deleted_a_higher_row_before_the_one_that_stands(
    tmp_path: Path,
) -> None:
    changes, rows = [change(5, HIGH, 0), change(12, LOW)], [held(12, LOW)]
    assert verdict(tmp_path, changes, rows) == Kind.DIFFERENT
    assert verdict(tmp_path, changes, rows, shared=frozenset({"other"})) == "not verifiable"


def test_expected_rows_are_counted(tmp_path: Path) -> None:
    _, check = checked(tmp_path, [change(12, LOW)], [held(12, LOW)])
    check.check((2,), [tombstone(13)], [])
    assert check.expected == 1


def test_keys_are_shown_as_people_read_them() -> None:
    assert (shown_key((5,)), shown_key((5, "eu"))) == ("5", "(5, eu)")


UNTOLD = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("facts", "source", "right"),
    [
        ({}, MemorySource(), [UNTOLD]),
        ({"readable": EXPIRED}, MemorySource(), [UNTOLD, "long", None]),
        ({}, MemorySource(compacted=frozenset({"t"})), [UNTOLD, "long", None]),
    ],
    ids=["all is there", "expired", "compacted"],
)
def test_a_value_that_nobody_tells_may_be_that_of_a_record_that_is_gone(
    tmp_path: Path, facts: dict[str, Any], source: MemorySource, right: Sequence[str | None]
) -> None:
    """Also where it is certain which row stands: here each one replaces the one before."""
    columns = ["id", "note"]
    its = {"keys": ["id"], "envelope": "debezium", "schema": "id BIGINT, note STRING"}
    config = configured(tmp_path, mode="upsert", **its)
    decoder = config.pipelines["p"].decoder
    every = [replace(each, decoder=decoder) for each in ENTRIES]
    event = {"op": "u", "after": {"id": 1, "note": UNTOLD}}
    put = Change(1, ZERO, 12, (), 5000, json.dumps(event).encode())
    schema = pa.schema([("id", pa.int64()), ("note", pa.string()), ("_kafka", KAFKA)])

    def is_right(note: str | None) -> bool:
        asked = subject(config, source, *every, **facts)
        readers = EntryReaders(asked, schema, columns)
        rule, doubts = Latest(ordered=False), Doubts(tmp_path / "doubts")
        check = KeyCheck(asked, Comparison(columns), readers, rule, doubts, NOTHING)
        check.check((1,), [put], [Row(ZERO, 12, (1, note), 5000)])
        return not found(asked)

    assert [each for each in (UNTOLD, "long", None) if is_right(each)] == right
