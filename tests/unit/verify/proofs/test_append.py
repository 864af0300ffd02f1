"""Append tables: each kind of difference is found with its offset, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.config.registry import FORMATS, Format
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Reader
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.append import verify_append
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.proofs.quarantine import Quarantined
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


def held(*offsets: int) -> Quarantined:
    """Offsets in quarantine, with the bytes that Kafka has."""
    hashes = [hash((None, each.value())) for each in RECORDS[ZERO] if each.offset() in offsets]
    return Quarantined(np.array(offsets, np.int64), np.array(hashes, np.int64))


def test_a_good_table_has_nothing_wrong(tmp_path: Path) -> None:
    asked = verified(tmp_path, ROWS)
    assert (found(asked), asked.findings.unchecked) == ({}, [])
    assert asked.coverage.records() == 9


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
    assert Kind.MISSING not in found(verified(tmp_path, ROWS[1:], quarantine={ZERO: held(0)}))
    twice = verified(tmp_path, ROWS, quarantine={ZERO: held(0)})
    assert found(twice)[Kind.DUPLICATED] == 1


def test_a_good_record_that_is_in_quarantine_as_too_large_is_a_fault(tmp_path: Path) -> None:
    """Only a table of totals can say so of a good record."""
    hashes = np.array([hash((None, RECORDS[ZERO][0].value()))], np.int64)
    large = Quarantined(np.array([0]), hashes, np.array([True]))
    assert found(verified(tmp_path, ROWS[1:], quarantine={ZERO: large})) == {Kind.QUARANTINE: 1}


def test_rows_of_topics_that_other_pipelines_write_are_left_to_them(tmp_path: Path) -> None:
    rows = [*ROWS, row(9, 9, 9, ("other", 0))]
    assert found(verified(tmp_path, rows, shared=frozenset({"other"}))) == {}
    assert found(verified(tmp_path, rows)) == {Kind.UNEXPECTED: 1}


def test_rows_of_trimmed_entries_are_unchecked(tmp_path: Path) -> None:
    first = entry(2, span(4, 8), span(1, 2, ONE))
    asked = subject(configured(tmp_path), MemorySource(RECORDS), first, trimmed=True)
    verify_append(asked, stored(ROWS), workspace(tmp_path))
    assert found(asked) == {}
    assert asked.findings.unchecked == ["5 rows: log clean-up removed their entries"]


def test_a_record_that_verify_cannot_decode_is_a_difference(tmp_path: Path) -> None:
    records = {ZERO: [message(0, b"{}"), message(1, b'{"id":"x"}'), message(2, None)]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(0, 3)))
    rows = [row(1, 1, each) for each in range(3)]
    verify_append(asked, stored(rows), workspace(tmp_path))
    assert found(asked) == {Kind.DIFFERENT: 3}
    assert problems(asked) == (
        "t-0@0: other values in id, n",
        "t-0@1: in the table, but verify cannot decode its record: not int64: 'x'",
        "t-0@2: in the table, but verify cannot decode its record: the value is null",
    )


def test_of_many_offsets_only_some_values_are_compared_and_that_is_said(tmp_path: Path) -> None:
    offsets = (0, 1, 101, 299_999)
    records = {ZERO: [message(each, value(each, 1)) for each in offsets]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(0, 300_000)))
    rows = [row(each, 2, each) for each in offsets]
    verify_append(asked, stored(rows), workspace(tmp_path, Bounds(window=100_000)))
    assert asked.findings.unchecked == ["values at offsets that are not a multiple of 101"]
    assert found(asked) == {Kind.DIFFERENT: 2}
    assert asked.findings.proof().left == {Unchecked.SAMPLED: 300_000 - 300_000 // 101}


def test_a_strict_verification_compares_all_values(tmp_path: Path) -> None:
    offsets = (0, 1, 101, 299_999)
    records = {ZERO: [message(each, value(each, 1)) for each in offsets]}
    asked = subject(configured(tmp_path), MemorySource(records), entry(1, span(0, 300_000)))
    rows = [row(each, 2, each) for each in offsets]
    verify_append(asked, stored(rows), workspace(tmp_path, Bounds.of_every_value()))
    assert (found(asked), asked.findings.unchecked) == ({Kind.DIFFERENT: 4}, [])


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
