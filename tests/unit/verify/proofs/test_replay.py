"""One pass over Kafka counts every visible record, and compares the quarantined ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.replay import replay
from rivermouth.verify.result import Kind, Unchecked
from rivermouth.verify.subject import Subject
from tests.unit.verify.doubles import (
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    message,
    problems,
    span,
    stored,
    subject,
)

pytestmark = pytest.mark.unit

MANY: list[Partition] = [("t", number) for number in range(40)]


def held(*offsets: int, value: bytes = b"?") -> Quarantined:
    hashes = [hash((None, value))] * len(offsets)
    return Quarantined(np.array(offsets, np.int64), np.array(hashes, np.int64))


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


def test_good_records_are_those_that_are_not_in_quarantine(tmp_path: Path) -> None:
    source = MemorySource({ZERO: [message(0, b"v"), message(1, b"?")]})
    asked = subject(configured(tmp_path), source, entry(1, span(0, 2)))
    good = [
        bool(each)
        for seen in replay(asked, stored([], {ZERO: held(1)}), lambda *told: None)
        for each in seen.good
    ]
    assert good == [True, False]
