"""Which quarantine rows count, and what is wrong with those that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.config import TableName
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import Partition
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs.quarantine import Quarantined, read_quarantine
from rivermouth.verification.proofs.replay import replay
from rivermouth.verification.result import Findings, Kind, Unchecked
from rivermouth.verification.subject import Subject
from tests.unit.verification.doubles import (
    QUARANTINE,
    ZERO,
    MemoryRows,
    MemorySource,
    MemoryTables,
    configured,
    entry,
    found,
    message,
    problems,
    quarantined,
    span,
    stored,
    subject,
)

pytestmark = pytest.mark.unit

TABLE = TableName("t", "p_quarantine")
ENTRIES = (entry(1, span(0, 5)), entry(2, span(5, 9)))


def bad(offset: int, sequence: int, value: bytes | None = b"?") -> dict[str, Any]:
    names = ("commit", "topic", "partition", "offset", "key", "value")
    return dict(zip(names, (f"commit-{sequence}", *ZERO, offset, b"k", value), strict=True))


def read(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[Partition, Quarantined], Coverage, Findings]:
    tables = MemoryTables({str(TABLE): MemoryRows(rows, QUARANTINE)})
    coverage, findings = Coverage(ENTRIES), Findings("p")
    ledger = Ledger(len(ENTRIES), ENTRIES)
    return read_quarantine(tables, TABLE, ledger, coverage, findings), coverage, findings


def test_rows_are_counted_per_range_and_left_overs_of_crashes_are_not() -> None:
    rows, coverage, findings = read([bad(7, 2), bad(3, 1), bad(8, 2), bad(4, 99)])
    assert rows[ZERO].offsets.tolist() == [3, 7, 8]
    assert coverage.spans[ZERO].quarantined.tolist() == [1, 2]
    assert (findings.quarantined, found(findings)) == (3, {})


def test_those_that_are_too_large_are_known_by_their_code() -> None:
    rows = [{**bad(at, 1), "code": code} for at, code in ((4, "RM606"), (1, "RM603"), (2, None))]
    coded = QUARANTINE.append(pa.field("code", pa.string()))
    tables = MemoryTables({str(TABLE): MemoryRows(rows, coded)})
    ledger = Ledger(len(ENTRIES), ENTRIES)
    held = read_quarantine(tables, TABLE, ledger, Coverage(ENTRIES), Findings("p"))[ZERO]
    assert held.too_large(np.arange(6)).tolist() == [each == 4 for each in range(6)]
    earlier, *_ = read([bad(4, 1)])
    assert not earlier[ZERO].too_large(np.arange(6)).any()


def test_without_the_table_nothing_is_quarantined() -> None:
    ledger = Ledger(len(ENTRIES), ENTRIES)
    assert read_quarantine(MemoryTables(), TABLE, ledger, Coverage(ENTRIES), Findings("p")) == {}


def test_a_row_under_an_entry_that_does_not_cover_it_is_unexpected() -> None:
    *_, findings = read([bad(3, 2), bad(20, 1)])
    assert found(findings) == {Kind.UNEXPECTED: 2}
    assert problems(findings)[0] == (
        "t-0@3: in quarantine, but the entry of its commit does not cover it"
    )


def test_an_offset_twice_is_duplicated() -> None:
    *_, findings = read([bad(3, 1), bad(3, 1, b"other"), bad(4, 1), bad(3, 1)])
    assert found(findings) == {Kind.DUPLICATED: 2}
    assert problems(findings)[0] == "t-0@3: in quarantine more than once"


def test_raw_bytes_are_compared_and_offsets_that_were_seen_are_noted() -> None:
    rows, *_ = read([bad(3, 1), bad(4, 1), bad(7, 2, None)])
    held = rows[ZERO]
    assert held.same(message(3, b"?", b"k"))
    assert not held.same(message(4, b"other", b"k"))
    assert held.unseen(0, 9).tolist() == [7]
    assert held.same(message(7, None, b"k"))
    assert held.within(4, 8).tolist() == [4, 7]


# One pass over Kafka counts every visible record, and compares the quarantined ones


MANY: list[Partition] = [("t", number) for number in range(40)]


def held(*offsets: int) -> Quarantined:
    return quarantined(*(message(each, b"?") for each in offsets))


def run(asked: Subject, **quarantine: Quarantined) -> list[tuple[str, int, int]]:
    told: list[tuple[str, int, int]] = []
    by_partition = {("t", int(name.removeprefix("p"))): each for name, each in quarantine.items()}
    for seen in replay(asked, stored([], by_partition), lambda *each: told.append(each)):
        assert not (seen.done and seen.messages)
        assert len(seen.messages) == len(seen.offsets) == len(seen.ranges) == len(seen.good)
    return told


def test_every_partition_is_read_once_to_its_end(tmp_path: Path) -> None:
    records = {each: [message(2, b"v", partition=each)] for each in MANY}
    entries = entry(1, *(span(0, 4, each) for each in MANY))
    asked = subject(configured(tmp_path), MemorySource(records), entries)
    told = run(asked)
    assert asked.coverage.records() == 40
    assert told[-1] == ("p", 160, 160)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert found(asked) == {}


def test_records_count_for_their_range_and_those_between_ranges_for_none(tmp_path: Path) -> None:
    source = MemorySource({ZERO: [message(each, b"v") for each in range(10)]})
    asked = subject(configured(tmp_path), source, entry(1, span(0, 3)), entry(2, span(5, 9)))
    run(asked)
    assert asked.coverage.spans[ZERO].visible.tolist() == [3, 4]


def test_quarantined_records_are_compared_and_those_that_kafka_lacks_are_unexpected(
    tmp_path: Path,
) -> None:
    source = MemorySource({ZERO: [message(0, b"?"), message(1, b"other")]})
    asked = subject(configured(tmp_path), source, entry(1, span(0, 5)))
    run(asked, p0=held(0, 1, 3), p9=held(7))
    assert found(asked) == {Kind.DIFFERENT: 1, Kind.UNEXPECTED: 1}
    assert problems(asked) == (
        "t-0@1: quarantine holds other bytes than Kafka",
        "t-0@3: in quarantine, but Kafka shows no such record",
    )


def test_quarantined_records_that_expired_are_no_findings(tmp_path: Path) -> None:
    asked = subject(configured(tmp_path), MemorySource(first={ZERO: 4}), entry(1, span(0, 5)))
    run(asked, p0=held(3))
    assert found(asked) == {}


def test_quarantined_records_of_a_compacted_topic_are_unchecked_but_for_aborted_ones(
    tmp_path: Path,
) -> None:
    source = MemorySource(compacted=frozenset({"t"}), aborted=frozenset({(ZERO, 4)}))
    asked = subject(configured(tmp_path), source, entry(1, span(0, 5)))
    run(asked, p0=held(1, 3, 4))
    assert problems(asked) == ("t-0@4: in quarantine, but Kafka shows no such record",)
    assert asked.findings.proof().left == {Unchecked.COMPACTED: 2}
