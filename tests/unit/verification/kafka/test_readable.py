"""What Kafka can still show of the ledger, and what is wrong where it is another Kafka."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from confluent_kafka import Uuid

from rivermouth.config import Topics
from rivermouth.verification.kafka.client import Identity
from rivermouth.verification.kafka.readable import Readable, readable
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import LedgerEntry
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings, Kind, Unchecked
from tests.unit.verification.doubles import ZERO, MemorySource, entry, found, problems, span

pytestmark = pytest.mark.unit

ENTRIES = (entry(1, span(2, 5)), entry(2, span(5, 9)))


def ask(
    source: MemorySource, *entries: LedgerEntry, configured: tuple[str, ...] = ("t",)
) -> tuple[Readable, Findings]:
    findings = Findings("p")
    ledger = Ledger(1, entries, entries)
    return readable(ledger, Coverage(entries), source, Topics(configured), findings), findings


def test_what_kafka_holds_whole_is_readable() -> None:
    shown, findings = ask(MemorySource(compacted=frozenset({"t"})), *ENTRIES)
    assert shown == Readable({ZERO: (2, 9)}, frozenset({"t"}))
    assert (found(findings), findings.unchecked) == ({}, [])


def test_a_topic_whose_settings_are_not_told_may_be_compacted() -> None:
    shown, findings = ask(MemorySource(unknown_policy=frozenset({"t", "u"})), *ENTRIES)
    assert shown == Readable({ZERO: (2, 9)}, frozenset({"t"}))
    assert (found(findings), findings.unchecked) == ({}, [])
    assert findings.not_told == ["whether Kafka compacts t (DescribeConfigs)"]


@pytest.mark.parametrize(
    ("ends", "configured", "unchecked"),
    [
        (8, Topics(("t",)), ["t-1[0,8): no entry covers it"]),
        (3, Topics(("t",)), ["t-1[0,3): no entry covers it"]),
        (0, Topics(("t",)), []),
        (8, Topics(()), []),
        (8, Topics(assigned={"t": (0,)}), []),
    ],
    ids=["records", "all expired", "never any", "another pipeline's topic", "not assigned"],
)
def test_a_partition_that_no_entry_covers_is_named(
    ends: int, configured: Topics, unchecked: list[str]
) -> None:
    one = ("t", 1)
    source = MemorySource({ZERO: (), one: ()}, first={one: min(ends, 3)}, ends={one: ends})
    findings = Findings("p")
    readable(Ledger(1, ENTRIES, ENTRIES), Coverage(ENTRIES), source, configured, findings)
    assert (found(findings), findings.unchecked) == ({}, unchecked)


def test_without_an_entry_kafka_is_not_asked() -> None:
    class Silent(MemorySource):
        def identity(self, topics: Iterable[str]) -> Identity:
            raise AssertionError(f"asked for {topics}")

    assert ask(Silent())[0] == Readable({})


@pytest.mark.parametrize(
    ("first", "end", "readable_part", "unchecked", "faults"),
    [
        (0, 99, (2, 9), [], 0),
        (4, 99, (4, 9), ["t-0[2,4): expired in Kafka"], 0),
        (20, 99, (9, 9), ["t-0[2,9): expired in Kafka"], 0),
        (0, 7, (2, 7), ["t-0[7,9): Kafka's log ends before it"], 1),
        (0, 0, (2, 2), ["t-0[2,9): Kafka's log ends before it"], 1),
    ],
)
def test_expired_offsets_are_unchecked_and_a_log_that_ends_early_is_a_fault(
    first: int, end: int, readable_part: tuple[int, int], unchecked: list[str], faults: int
) -> None:
    shown, findings = ask(MemorySource(first={ZERO: first}, ends={ZERO: end}), *ENTRIES)
    assert shown.ranges == {ZERO: readable_part}
    assert findings.unchecked == unchecked
    assert found(findings) == ({Kind.FAULT: faults} if faults else {})


@pytest.mark.parametrize(
    ("source", "entries", "why"),
    [
        (
            MemorySource(topics={"t": "new"}),
            ENTRIES,
            "recorded with the id id, its id is now new",
        ),
        (
            MemorySource(cluster="b"),
            ENTRIES,
            "recorded in cluster cluster, this is cluster b",
        ),
        (
            MemorySource(topics={"t": "new"}),
            (ENTRIES[0], entry(2, span(5, 9), topics={"t": "new"})),
            "recorded with the ids id and new",
        ),
    ],
)
def test_another_topic_or_cluster_is_a_fault_and_nothing_of_it_is_read(
    source: MemorySource, entries: tuple[LedgerEntry, ...], why: str
) -> None:
    shown, findings = ask(source, *entries)
    assert shown.ranges == {ZERO: (9, 9)}
    assert found(findings) == {Kind.FAULT: 1}
    assert (problems(findings), findings.unchecked) == ((f"topic t: {why}",), [f"t: {why}"])


NOT_TOLD = str(Uuid(0, 0))
"""What the client gives as the id of a topic where the broker tells none."""


def with_ids(*ids: str) -> tuple[LedgerEntry, ...]:
    """Entries that recorded the topic, each with the next of these ids."""
    numbered = enumerate(ids, start=1)
    return tuple(entry(n, span(n, n + 1), topics={"t": each}) for n, each in numbered)


@pytest.mark.parametrize("configured", [("t",), ()], ids=["configured", "taken out"])
@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (("id",), NOT_TOLD),
        ((NOT_TOLD,), "id"),
        ((NOT_TOLD, "id"), "id"),
        (("id", NOT_TOLD), "id"),
    ],
)
def test_a_topic_id_that_is_not_told_is_compared_with_nothing(
    recorded: tuple[str, ...], now: str, configured: tuple[str, ...]
) -> None:
    source = MemorySource(topics={"t": now})
    shown, findings = ask(source, *with_ids(*recorded), configured=configured)
    assert (found(findings), findings.unchecked) == ({}, [])
    assert shown.ranges == {ZERO: (1, 1 + len(recorded))}


@pytest.mark.parametrize("recorded", [(NOT_TOLD, "id", "new"), ("id", NOT_TOLD, "new")])
def test_between_ids_that_are_not_told_two_that_are_told_are_compared(
    recorded: tuple[str, ...],
) -> None:
    _, findings = ask(MemorySource(topics={"t": NOT_TOLD}), *with_ids(*recorded))
    assert problems(findings) == ("topic t: recorded with the ids id and new",)


GONE = MemorySource(topics={})
OTHER = MemorySource(topics={"t": "new"})
NEVER_READ = "t: no longer in Kafka, and 3 offsets of it were never read"
UNREAD = (*ENTRIES, entry(3, span(9, 9), ends={ZERO: 12}))


@pytest.mark.parametrize(
    ("source", "entries", "configured", "faults"),
    [
        (GONE, ENTRIES, ("t",), []),
        (GONE, ENTRIES, (), []),
        (OTHER, ENTRIES, (), []),
        (GONE, UNREAD, (), []),
        (
            GONE,
            UNREAD,
            ("t",),
            [f"topic {NEVER_READ}"],
        ),
    ],
)
def test_a_deleted_topic_is_unchecked_unless_records_of_it_should_still_be_there(
    source: MemorySource,
    entries: tuple[LedgerEntry, ...],
    configured: tuple[str, ...],
    faults: list[str],
) -> None:
    shown, findings = ask(source, *entries, configured=configured)
    assert shown.ranges == {ZERO: (9, 9)}
    assert [*problems(findings)] == faults
    proof = findings.proof()
    assert proof.left == {Unchecked.DELETED: 7}
    assert proof.unchecked[0].startswith("t: no longer in Kafka")
