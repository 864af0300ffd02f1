"""What a snapshot of a ledger tells: ages, what was forgotten, whose ``txn`` it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rivermouth.errors import LedgerTrimmed
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.snapshot import LedgerSnapshot, snapshot_txn
from tests.builders import (
    PIPELINE,
    TABLE,
    TableLog,
    entry_after,
    record_of_entry,
    span,
)

pytestmark = pytest.mark.unit

DAY = 86400.0
LOG = TableLog().wrote(span(0, 5)).wrote(span(5, 8))
assert LOG.newest is not None
KEPT = Recorded(2, 0, replace(LOG.newest, ranges=(), rows=None))


def snapshot(records: Sequence[CommitRecord]) -> LedgerSnapshot:
    history, entries = replay(History(PIPELINE, "orders s.orders"), records)
    return LedgerSnapshot(history, entries, TABLE, history.sequence, history.sequence)


@pytest.mark.parametrize(("age", "old"), [(0, False), (10, False), (10.1, True)])
def test_an_entry_is_old_at_a_third_of_the_retention(age: float, old: bool) -> None:
    ledger = replace(snapshot(LOG.records), retention_s=30 * DAY)
    committed_s = LOG.records[-1].timestamp_ms / 1000
    assert ledger.is_old(committed_s + age * DAY) is old
    assert ledger.age_s(committed_s + age * DAY) == pytest.approx(age * DAY)


def test_without_an_entry_in_the_log_nothing_has_an_age() -> None:
    empty = replace(snapshot(TableLog().records), retention_s=30 * DAY)
    assert (empty.age_s(99 * DAY), empty.is_old(99 * DAY)) == (0.0, False)


@pytest.mark.parametrize(
    ("name", "told", "first", "kept", "txn"),
    [
        ("the log tells", 7, 3, KEPT, 7),
        ("a whole log without entries", None, 0, KEPT, 0),
        ("clean-up took every entry", None, 3, KEPT, 2),
        ("the version of the kept entry can be read: another table's log", None, 2, KEPT, 0),
        ("nobody knows of an entry", None, 3, None, 0),
    ],
)
def test_the_txn_is_what_the_log_tells_or_else_what_clean_up_can_have_taken(
    name: str, told: int | None, first: int, kept: Recorded | None, txn: int
) -> None:
    history = replay(History(PIPELINE, ""), [CommitRecord(first, 0, "OPTIMIZE", {}, {}, None)])[0]
    assert snapshot_txn(told, history, kept) == txn, name


def test_the_newest_readable_entry_stands_for_the_txn_and_no_table_has_none() -> None:
    assert snapshot_txn(None, snapshot(LOG.records).history, KEPT) == 2
    assert snapshot_txn(None, History(PIPELINE, ""), KEPT) == 0


def test_entries_that_clean_up_took_are_missed_unless_the_offsets_table_has_the_newest() -> None:
    empty = snapshot([CommitRecord(9, 0, "OPTIMIZE", {}, {}, None)])
    empty.check_not_trimmed()
    with pytest.raises(LedgerTrimmed) as caught:
        replace(empty, txn=3).check_not_trimmed()
    assert caught.value.found == "none"
    with pytest.raises(LedgerTrimmed) as caught:
        replace(empty, txn=3, last_projected=KEPT).check_not_trimmed()
    assert (caught.value.expected[:7], caught.value.found) == ("entry 3", "entry 2 there")
    recovered = History.recovered_from(PIPELINE, "", KEPT.entry)
    replace(empty, history=recovered, txn=2, last_projected=KEPT).check_not_trimmed()


def test_an_entry_that_was_recovered_comes_before_those_in_the_log() -> None:
    known = KEPT.entry
    third = entry_after(known, span(8, 9))
    begun = History.recovered_from(PIPELINE, "", known)
    history, entries = replay(begun, [record_of_entry(5, third)])
    assert (history.faults, history.newest, history.recovered) == ((), third, known)
    ledger = LedgerSnapshot(history, entries)
    assert ledger.known_entries == [known, third]
