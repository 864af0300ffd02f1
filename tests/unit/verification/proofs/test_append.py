"""Append tables: each kind of difference is found with its offset, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.formats import FORMATS, Format
from rivermouth.verification.formats.reader import NOT_VERIFIABLE, CannotTell, Reader
from rivermouth.verification.ledger.entry import Partition
from rivermouth.verification.proofs.append import verify_append
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.proofs.quarantine import Quarantined
from rivermouth.verification.result import Kind, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    SCHEMA,
    ZERO,
    Expiring,
    MemorySource,
    configured,
    entry,
    found,
    left,
    message,
    problems,
    quarantined,
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
    ZERO: [message(each, value(each, 10 * each)) for each in (0, 1, 2, 3, 5, 6, 7)],  # 4: a marker
    ONE: [message(each, value(100 + each, each), partition=ONE) for each in range(2)],
}
ENTRIES = (entry(1, span(0, 4), span(0, 1, ONE)), entry(2, span(4, 8), span(1, 2, ONE)))
ROWS = [row(each, 10 * each, each) for each in (0, 1, 2, 3, 5, 6, 7)]
ROWS += [row(100 + each, each, each, ONE) for each in range(2)]


def verified(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    source: MemorySource | None = None,
    quarantine: Mapping[Partition, Quarantined] | None = None,
    **facts: Any,
) -> Subject:
    asked = subject(configured(folder), source or MemorySource(RECORDS), *ENTRIES, **facts)
    verify_append(asked, stored(rows, quarantine), workspace(folder))
    return asked


def test_a_good_table_has_nothing_wrong(tmp_path: Path) -> None:
    asked = verified(tmp_path, ROWS)
    assert (found(asked), asked.findings.unchecked) == ({}, [])
    assert asked.coverage.records() == 9


def test_a_record_without_a_value_has_no_row_and_is_counted_apart(tmp_path: Path) -> None:
    source = MemorySource(
        {ZERO: [message(0, value(0, 0)), message(1, None), *RECORDS[ZERO][2:]], ONE: RECORDS[ONE]}
    )
    asked = verified(tmp_path, [ROWS[0], *ROWS[2:]], source)
    assert (found(asked), asked.coverage.records(), asked.coverage.skipped()) == ({}, 9, 1)

    asked = verified(tmp_path, ROWS, source)
    assert problems(asked) == ("t-0@1: in the table, but Kafka shows no such record",)


CASES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Kind, int, str]] = {
    "a row missing": (ROWS[1:], Kind.MISSING, 1, "t-0@0: neither in the table nor in quarantine"),
    "a row three times": (
        [*ROWS, ROWS[2], ROWS[2]],
        Kind.DUPLICATED,
        2,
        "t-0@2: more than once in table and quarantine",
    ),
    "a row of a marker": (
        [*ROWS, row(4, 4, 4)],
        Kind.UNEXPECTED,
        1,
        "t-0@4: in the table, but Kafka shows no such record",
    ),
    "a row beyond the ledger": (
        [*ROWS, row(9, 9, 9)],
        Kind.UNEXPECTED,
        1,
        "t-0@9: in the table, but in no range of the ledger",
    ),
    "a row of an unknown partition": (
        [*ROWS, row(9, 9, 9, ("t", 7))],
        Kind.UNEXPECTED,
        1,
        "t-7@9: in the table, but in no range of the ledger",
    ),
    "a row of nobody": (
        [*ROWS, row(9, 9, None)],
        Kind.UNEXPECTED,
        1,
        "1 row without Kafka coordinates",
    ),
    "another value": (
        [row(0, 7, 0), *ROWS[1:]],
        Kind.DIFFERENT,
        1,
        "t-0@0: other values in n",
    ),
    "another timestamp": (
        [{**ROWS[0], "_kafka": {**ROWS[0]["_kafka"], "timestamp": 1}}, *ROWS[1:]],
        Kind.DIFFERENT,
        1,
        "t-0@0: other values in _kafka.timestamp",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_found_with_its_offset(tmp_path: Path, case: str) -> None:
    rows, kind, number, line = CASES[case]
    asked = verified(tmp_path, rows)
    assert found(asked) == {kind: number}
    assert problems(asked)[0] == line


def test_a_quarantined_record_is_not_missing_but_a_row_of_it_is_a_duplicate(
    tmp_path: Path,
) -> None:
    bad = {ZERO: quarantined(RECORDS[ZERO][0])}
    assert Kind.MISSING not in found(verified(tmp_path, ROWS[1:], quarantine=bad))
    assert found(verified(tmp_path, ROWS, quarantine=bad))[Kind.DUPLICATED] == 1


def test_a_good_record_that_is_in_quarantine_as_too_large_is_a_fault(tmp_path: Path) -> None:
    """Only a table of totals can say so of a good record."""
    large = {ZERO: quarantined(RECORDS[ZERO][0], large=True)}
    assert found(verified(tmp_path, ROWS[1:], quarantine=large)) == {Kind.QUARANTINE: 1}


def test_rows_of_trimmed_entries_are_unchecked(tmp_path: Path) -> None:
    first = entry(2, span(4, 8), span(1, 2, ONE))
    asked = subject(configured(tmp_path), MemorySource(RECORDS), first, trimmed=True)
    verify_append(asked, stored(ROWS), workspace(tmp_path))
    assert found(asked) == {}
    assert asked.findings.unchecked == ["5 rows: log clean-up removed their entries"]


def test_a_record_that_verify_cannot_decode_is_a_difference(tmp_path: Path) -> None:
    records = {ZERO: [message(0, b"{}"), message(1, b'{"id":"x"}'), message(2, b"")]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(0, 3)))
    rows = [row(1, 1, each) for each in range(3)]
    verify_append(asked, stored(rows), workspace(tmp_path))
    assert found(asked) == {Kind.DIFFERENT: 3}
    assert problems(asked) == (
        "t-0@0: in the table, but verify cannot decode its record: it has none of the fields of"
        " the schema",
        "t-0@1: in the table, but verify cannot decode its record: not int64: 'x'",
        "t-0@2: in the table, but verify cannot decode its record: the value is empty",
    )


@pytest.mark.parametrize(
    ("bounds", "different", "sampled"),
    [
        (Bounds(window=100_000), 2, {Unchecked.SAMPLED: 300_000 - 300_000 // 101}),
        (Bounds.of_every_value(), 4, {}),
    ],
    ids=["usual", "strict"],
)
def test_of_many_offsets_only_some_values_are_compared_and_that_is_said(
    tmp_path: Path, bounds: Bounds, different: int, sampled: dict[Unchecked, int]
) -> None:
    offsets = (0, 1, 101, 299_999)
    records = {ZERO: [message(each, value(each, 1)) for each in offsets]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(0, 300_000)))
    rows = [row(each, 2, each) for each in offsets]
    verify_append(asked, stored(rows), workspace(tmp_path, bounds))
    assert (found(asked), left(asked)) == ({Kind.DIFFERENT: different}, sampled)
    said = ["values at offsets that are not a multiple of 101"] if sampled else []
    assert asked.findings.unchecked == said


def test_values_that_verify_cannot_tell_are_counted_and_the_others_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by = f"{__name__}:{unsure.__name__}"
    monkeypatch.setitem(FORMATS.by_name, "json", Format("json", "none:none", made_by, {}))
    records = {ZERO: [message(each, b"x" * each or b"0") for each in range(1, 4)]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(1, 4)))
    rows = [row(1, 9, 1), row(9, 9, 2), row(9, 9, 3)]
    verify_append(asked, stored(rows), workspace(tmp_path))
    assert problems(asked) == ("t-0@2: other values in id",)
    assert asked.findings.proof().left == {Unchecked.VALUES: 4}
    assert asked.findings.unchecked == ["4 values: verify cannot tell what Spark makes of them"]


def unsure(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """Reads the length of a value as ``id``; cannot tell ``n``, and nothing of three bytes."""

    def read(value: bytes) -> tuple[Any, ...]:
        if len(value) == 3:
            raise CannotTell("three bytes")
        return (len(value), NOT_VERIFIABLE)

    return read


def test_a_table_without_the_columns_cannot_be_read(tmp_path: Path) -> None:
    asked = subject(configured(tmp_path), MemorySource(RECORDS), *ENTRIES)
    without = stored([], schema=SCHEMA.remove(SCHEMA.get_field_index("n")))
    with pytest.raises(Unreadable, match="it lacks the columns n"):
        verify_append(asked, without, workspace(tmp_path))


# Rows that Kafka no longer shows: expired, compacted away, or never there


EIGHT = [row(each, each, each) for each in range(8)]


def messages(*offsets: int) -> MemorySource:
    return MemorySource({ZERO: [message(each, value(each, each)) for each in offsets]})


def readable(folder: Path, source: MemorySource, part: tuple[int, int], window: int = 3) -> Subject:
    asked = subject(configured(folder), source, entry(1, span(0, 8)), readable={ZERO: part})
    verify_append(asked, stored(EIGHT), workspace(folder, Bounds(window=window)))
    return asked


@pytest.mark.parametrize("window", [1, 3, 8, 100])
def test_rows_whose_records_expired_are_not_held_against_the_table(
    tmp_path: Path, window: int
) -> None:
    assert found(readable(tmp_path, messages(5, 6, 7), (5, 8), window)) == {}
    asked = readable(tmp_path, messages(5, 7), (5, 8), window)
    assert problems(asked) == ("t-0@6: in the table, but Kafka shows no such record",)


@pytest.mark.parametrize("window", [1, 3, 8, 100])
def test_rows_after_the_last_record_are_checked_too(tmp_path: Path, window: int) -> None:
    assert found(readable(tmp_path, messages(), (0, 8), window)) == {Kind.UNEXPECTED: 8}
    assert found(readable(tmp_path, messages(0, 1), (0, 8), window)) == {Kind.UNEXPECTED: 6}


def test_rows_are_not_held_against_the_table_whose_records_expire_while_the_partition_is_read(
    tmp_path: Path,
) -> None:
    records = messages(2, 3, 4, 5, 6, 7).records
    assert found(readable(tmp_path, Expiring(records, gone={ZERO: 2}, seen={ZERO}), (0, 8))) == {}
    assert found(readable(tmp_path, MemorySource(records), (0, 8))) == {Kind.UNEXPECTED: 2}


def test_a_row_whose_record_was_compacted_is_unchecked_and_one_of_an_aborted_record_is_not(
    tmp_path: Path,
) -> None:
    records = messages(0, 1, 2, 5, 6, 7).records
    compacted = MemorySource(records, compacted=frozenset({"t"}), aborted=frozenset({(ZERO, 4)}))
    asked = readable(tmp_path, compacted, (0, 8))
    assert problems(asked) == ("t-0@4: in the table, but Kafka shows no such record",)
    assert asked.findings.unchecked == ["1 row: Kafka has no such record, as after compaction"]
