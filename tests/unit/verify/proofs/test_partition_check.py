"""Rows that Kafka no longer shows: expired, compacted away, or never there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.verify.proofs.append import verify_append
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.result import Kind
from rivermouth.verify.subject import Subject
from tests.unit.verify.doubles import (
    ZERO,
    Expiring,
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

ROWS = [row(each, each, each) for each in range(8)]


def messages(*offsets: int) -> MemorySource:
    return MemorySource({ZERO: [message(each, value(each, each)) for each in offsets]})


def verified(
    folder: Path, source: MemorySource, readable: tuple[int, int], window: int = 3
) -> Subject:
    asked = subject(configured(folder), source, entry(1, span(0, 8)), readable={ZERO: readable})
    verify_append(asked, stored(ROWS), workspace(folder, Bounds(window=window)))
    return asked


@pytest.mark.parametrize("window", [1, 3, 8, 100])
def test_rows_whose_records_expired_are_not_held_against_the_table(
    tmp_path: Path, window: int
) -> None:
    assert found(verified(tmp_path, messages(5, 6, 7), (5, 8), window)) == {}
    asked = verified(tmp_path, messages(5, 7), (5, 8), window)
    assert problems(asked) == ("t-0@6: in the table, but Kafka shows no such record",)


@pytest.mark.parametrize("window", [1, 3, 8, 100])
def test_rows_after_the_last_record_are_checked_too(tmp_path: Path, window: int) -> None:
    assert found(verified(tmp_path, messages(), (0, 8), window)) == {Kind.UNEXPECTED: 8}
    assert found(verified(tmp_path, messages(0, 1), (0, 8), window)) == {Kind.UNEXPECTED: 6}


def test_rows_are_not_held_against_the_table_whose_records_expire_while_the_partition_is_read(
    tmp_path: Path,
) -> None:
    records = messages(2, 3, 4, 5, 6, 7).records
    assert found(verified(tmp_path, Expiring(records, gone={ZERO: 2}, seen={ZERO}), (0, 8))) == {}
    assert found(verified(tmp_path, MemorySource(records), (0, 8))) == {Kind.UNEXPECTED: 2}


def test_a_row_whose_record_was_compacted_is_unchecked_and_one_of_an_aborted_record_is_not(
    tmp_path: Path,
) -> None:
    records = messages(0, 1, 2, 5, 6, 7).records
    compacted = MemorySource(records, compacted=frozenset({"t"}), aborted=frozenset({(ZERO, 4)}))
    asked = verified(tmp_path, compacted, (0, 8))
    assert problems(asked) == ("t-0@4: in the table, but Kafka shows no such record",)
    assert asked.findings.unchecked == ["1 row: Kafka has no such record, as after compaction"]
