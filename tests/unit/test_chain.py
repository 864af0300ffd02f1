"""Walking a log: what breaks a chain, what undoes it, what heals it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Accepted, Entry
from rivermouth.protocol.history import Chain
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.rollback import restored_position
from tests.builders import (
    PIPELINE,
    History,
    entry_after,
    foreign,
    place,
    position,
    record_of_entry,
    renumbered,
    span,
)

pytestmark = pytest.mark.unit

HARMLESS: list[tuple[str, dict[str, object]]] = [
    ("OPTIMIZE", {}),
    ("VACUUM END", {}),
    ("SET TBLPROPERTIES", {"properties": "{}"}),
    ("UPDATE", {"predicate": '["(a = 1)"]'}),
    ("DELETE", {"predicate": '["(a#12 = 1)"]'}),
    ("DELETE", {"predicate": "a > 2"}),
    ("MERGE", {"predicate": '["(a = b)"]'}),
    ("WRITE", {"mode": "Append"}),
    ("WRITE", {"mode": "Overwrite", "predicate": "p = 'x'"}),
    ("WRITE", {"mode": "Overwrite", "partitionBy": "[]", "isDynamicPartitionOverwrite": True}),
    ("WRITE", {"mode": "Overwrite", "isDynamicPartitionOverwrite": "true"}),
    ("WRITE", {"mode": "Overwrite", "partitionBy": "[]", "replaceUsingCols": "(id)"}),
    ("REPLACE COLUMNS", {"columns": "[]"}),
]
# As Spark and deltalake write them into the log.
UNDOING: list[tuple[str, dict[str, object]]] = [
    ("DELETE", {}),
    ("DELETE", {"predicate": None}),
    ("DELETE", {"predicate": "[]"}),
    ("DELETE", {"predicate": "true"}),
    ("DELETE", {"predicate": '["true"]'}),
    ("TRUNCATE", {}),
    ("WRITE", {"mode": "Overwrite"}),
    ("WRITE", {"mode": "Overwrite", "partitionBy": "[]"}),
    ("WRITE", {"mode": "Overwrite", "predicate": "true"}),
    ("WRITE", {"mode": "Overwrite", "isDynamicPartitionOverwrite": False}),
    ("REPLACE TABLE", {"partitionBy": "[]"}),
    ("CREATE OR REPLACE TABLE", {"mode": "Overwrite"}),
    ("CREATE OR REPLACE TABLE AS SELECT", {}),
    ("REPLACE TABLE AS SELECT", {}),
    ("CLONE", {"source": "elsewhere"}),
]


def walked(records: list[CommitRecord]) -> Chain:
    chain = Chain(PIPELINE, "orders silver.orders")
    chain.extend(records)
    return chain


def kinds(chain: Chain) -> list[type[Halt]]:
    return [type(each) for each in chain.faults]


def three_entries() -> History:
    """Version 1 to 3: entry 1 to 3."""
    return History().wrote(span(0, 5), span(0, 0, 1)).wrote(span(5, 8)).wrote(span(0, 4, 1))


def test_a_log_without_entries_is_a_chain_at_nothing() -> None:
    chain = walked(History().did("WRITE", mode="Append").records)
    assert (chain.sequence, chain.position, chain.newest) == (0, Position(), None)
    assert chain.faults == ()


def test_the_newest_entry_gives_sequence_and_position() -> None:
    chain = walked(three_entries().did("OPTIMIZE").records)
    assert (chain.sequence, chain.position, chain.version) == (3, position(8, 4), 4)
    assert chain.faults == ()


def test_extend_gives_the_entries_back_where_they_stand_and_can_go_on() -> None:
    records = three_entries().records
    chain = Chain(PIPELINE, "")
    assert [each.entry.sequence for each in chain.extend(records[:3])] == [1, 2]
    (last,) = chain.extend(records[3:])
    assert (last.version, last.timestamp_ms, last.entry.sequence) == (3, 3000, 3)
    assert chain.faults == ()


def test_two_pipelines_in_one_table_do_not_see_each_other() -> None:
    theirs = entry_after(None, span(3, 9), pipeline="other")
    ours = entry_after(None, span(0, 5))
    log = [
        foreign(0, "CREATE TABLE"),
        record_of_entry(1, theirs),
        record_of_entry(2, ours),
        record_of_entry(3, entry_after(theirs, span(9, 11), pipeline="other")),
        record_of_entry(4, entry_after(ours, span(5, 6))),
    ]
    for pipeline, stands in ((PIPELINE, position(6)), ("other", position(11))):
        chain = Chain(pipeline, "")
        chain.extend(log)
        assert (chain.sequence, chain.position, chain.faults) == (2, stands, ())


def test_a_log_that_begins_above_version_0_is_believed_from_its_first_entry_on() -> None:
    records = three_entries().wrote(span(8, 9)).records
    trimmed = walked(records[2:])
    assert (trimmed.sequence, trimmed.position, trimmed.faults) == (4, position(9, 4), ())


def test_a_log_that_begins_at_version_0_must_begin_with_sequence_1() -> None:
    records = three_entries().records
    broken = walked(renumbered([records[0], *records[2:]]))
    assert kinds(broken)[0] is LedgerBroken
    assert "sequence" in str(broken.faults[0])


Mutation = Callable[[Entry], Entry]


def _moved(entry: Entry, by: int) -> Entry:
    """The same entry with its last range moved: a gap or an overlap, consistent in itself."""
    *head, last = entry.ranges
    moved = OffsetRange(last.topic_partition, last.from_offset + by, last.until_offset + by)
    offsets = {**entry.position.offsets, last.topic_partition: moved.until_offset}
    return replace(entry, ranges=(*head, moved), position=Position(offsets))


@pytest.mark.parametrize(
    ("name", "said", "change"),
    [
        ("a gap", "ranges do not follow on", lambda entry: _moved(entry, +1)),
        ("an overlap", "ranges do not follow on", lambda entry: _moved(entry, -1)),
        ("sequence one up", "sequence", lambda entry: replace(entry, sequence=5)),
        ("sequence one down", "sequence", lambda entry: replace(entry, sequence=3)),
        ("a commit id again", "commit id", lambda entry: replace(entry, commit="orders-commit-1")),
        (
            "a position with a partition too many",
            "position",
            lambda entry: replace(
                entry, position=Position({**entry.position.offsets, place(7): 3})
            ),
        ),
        (
            "a position that moved without a range",
            "position",
            lambda entry: replace(
                entry, position=Position({**entry.position.offsets, place(0): 9})
            ),
        ),
    ],
)
def test_an_entry_that_does_not_follow_on_is_a_fault(
    name: str, said: str, change: Mutation
) -> None:
    *records, last = three_entries().wrote(span(4, 6, 1)).records
    entry = Entry.from_json(last.user_metadata or "")
    assert entry is not None
    chain = walked([*records, record_of_entry(4, change(entry))])
    assert any(said in str(each) for each in chain.faults), name


@pytest.mark.parametrize(
    ("name", "said", "change"),
    [
        ("txn differs", "txn and sequence", lambda r: replace(r, txns={app_id(PIPELINE): 9})),
        ("no entry", "without an entry", lambda r: replace(r, user_metadata=None)),
        ("broken entry", "format", lambda r: replace(r, user_metadata='{"rivermouth":99}')),
        ("version skipped", "missing in the log", lambda r: replace(r, version=9)),
        ("version repeated", "missing in the log", lambda r: replace(r, version=2)),
    ],
)
def test_a_commit_that_is_not_as_we_write_them_is_a_fault(
    name: str, said: str, change: Callable[[CommitRecord], CommitRecord]
) -> None:
    *records, last = three_entries().records
    chain = walked([*records, change(last)])
    assert any(said in str(each) for each in chain.faults), name


@pytest.mark.parametrize(("operation", "parameters"), HARMLESS)
def test_maintenance_and_changes_to_some_rows_do_not_undo(
    operation: str, parameters: dict[str, object]
) -> None:
    assert walked(three_entries().did(operation, **parameters).records).faults == ()


@pytest.mark.parametrize(("operation", "parameters"), UNDOING)
def test_what_takes_all_rows_away_undoes_every_entry(
    operation: str, parameters: dict[str, object]
) -> None:
    chain = walked(three_entries().did(operation, **parameters).records)
    (fault,) = chain.faults
    assert isinstance(fault, TableUndone)
    assert operation in fault.what
    assert (fault.expected, fault.found) == ("entry 3 to stand", "none")
    assert "VERSION AS OF 3" in fault.remedy


@pytest.mark.parametrize(("operation", "parameters"), [*UNDOING, ("RESTORE", {"version": 0})])
def test_what_happened_before_our_first_entry_does_not_concern_us(
    operation: str, parameters: dict[str, object]
) -> None:
    history = History().did("WRITE", mode="Append").did(operation, **parameters)
    assert walked(history.records).faults == ()
    assert walked(history.wrote(span(0, 5)).wrote(span(5, 6)).records).faults == ()


POINTS_IN_TIME = [
    {"version": None, "timestamp": "2026-11-21 08:28:34.896"},  # Spark
    {"datetime": "1795249678976"},  # deltalake
    {"version": "", "timestamp": "x"},
    {"version": "no number"},
]


@pytest.mark.parametrize("parameters", POINTS_IN_TIME)
def test_a_restore_to_a_point_in_time_halts_until_a_version_is_named(
    parameters: dict[str, object],
) -> None:
    history = three_entries().did("RESTORE", **parameters)
    (fault,) = walked(history.records).faults
    assert isinstance(fault, TableUndone)
    assert "point in time" in fault.found
    assert "VERSION AS OF 3" in fault.remedy
    assert walked(history.restored(3).records).faults == ()


@pytest.mark.parametrize("parameters", POINTS_IN_TIME)
def test_a_restore_to_a_point_in_time_before_our_first_entry_does_not_concern_us(
    parameters: dict[str, object],
) -> None:
    history = History().did("WRITE", mode="Append").did("RESTORE", **parameters)
    assert walked(history.records).faults == ()
    assert walked(history.wrote(span(0, 5)).records).faults == ()


@pytest.mark.parametrize("spelled", [int, str], ids=["Spark: a number", "deltalake: a text"])
@pytest.mark.parametrize(
    ("version", "found"),
    [(0, "none"), (1, "entry 1"), (2, "entry 2"), (3, None), (4, None)],
)
def test_a_restore_undoes_the_entries_after_its_version(
    version: int, found: str | None, spelled: Callable[[int], object]
) -> None:
    chain = walked(three_entries().did("OPTIMIZE").restored(spelled(version)).records)
    assert [each.found for each in chain.faults] == ([] if found is None else [found])


def test_the_remedy_leads_back_however_often_the_table_was_undone() -> None:
    history = three_entries().did("DELETE").restored(1).did("TRUNCATE").did("DELETE")
    (fault,) = walked(history.records).faults
    assert "DELETE at version 4" in fault.what
    assert "VERSION AS OF 3" in fault.remedy
    healed = history.restored(3)
    assert walked(healed.records).faults == ()
    (again,) = walked(healed.did("OPTIMIZE").did("TRUNCATE").records).faults
    assert "TRUNCATE at version 10" in again.what
    assert "VERSION AS OF 9" in again.remedy


def test_a_restore_to_a_state_that_was_undone_undoes_again() -> None:
    history = three_entries().restored(1).restored(3)
    assert walked(history.records).faults == ()
    (fault,) = walked(history.restored(4).records).faults
    assert fault.found == "entry 1"


def test_an_entry_over_undone_commits_is_torn_until_a_restore_to_a_state_that_was_whole() -> None:
    torn = three_entries().restored(1).wrote(span(8, 9))
    (fault,) = walked(torn.records).faults
    assert isinstance(fault, LedgerBroken)
    assert "version 5 was written over undone commits" in fault.what
    assert "VERSION AS OF 4" in fault.remedy
    assert kinds(walked(torn.restored(3).records)) == [TableUndone]
    assert walked(torn.records).standing == 3
    assert kinds(walked(torn.restored(5).records)) == [TableUndone]
    assert walked(torn.records).standing == -1, "torn again"
    assert kinds(walked(torn.restored(4).records)) == [TableUndone]
    assert walked(torn.records).standing == 1


def accepting(history: History, at: Position, accepted: Accepted) -> History:
    """An entry that accepts an undoing and goes on at ``at``."""
    here = tuple(OffsetRange(each, n, n) for each, n in at.offsets.items())
    assert history.newest is not None
    history.newest = replace(
        entry_after(history.newest), ranges=here, position=at, accepts=accepted, rows=None
    )
    history.records.append(record_of_entry(history.next_version, history.newest))
    return history


def test_an_accepted_restore_goes_on_from_what_stands() -> None:
    history = accepting(three_entries().restored(1), position(3), Accepted("restore", 4, 1))
    chain = walked(history.records)
    assert chain.faults == ()
    assert (chain.sequence, chain.standing, chain.position) == (4, 4, position(3))
    assert walked(history.wrote(span(3, 9)).records).faults == ()


def test_what_was_undone_does_not_stand_even_after_it_was_accepted() -> None:
    history = three_entries()
    assert walked(history.records).standing_sequences() == {1, 2, 3}
    assert walked(history.restored(1).records).standing_sequences() == {1}
    accepting(history, position(3), Accepted("restore", 4, 1)).wrote(span(3, 9))
    assert walked(history.records).standing_sequences() == {1, 4, 5}
    assert walked(history.did("TRUNCATE").records).standing_sequences() == set()
    accepting(history, position(0), Accepted("reset", history.next_version - 1, 0))
    assert walked(history.records).standing_sequences() == {6}


@pytest.mark.parametrize(
    ("at", "accepted"),
    [
        (position(3), Accepted("restore", 3, 1)),
        (position(3), Accepted("restore", 4, 2)),
    ],
)
def test_an_accepted_restore_that_did_not_happen_so_is_a_fault(
    at: Position, accepted: Accepted
) -> None:
    history = accepting(three_entries().restored(1), at, accepted)
    assert LedgerBroken in kinds(walked(history.records))


def test_a_reset_may_go_on_anywhere_and_a_restore_behind_it_undoes_it_again() -> None:
    history = accepting(three_entries().did("TRUNCATE"), position(5, 2), Accepted("reset", 4, 0))
    assert walked(history.records).faults == ()
    assert walked(history.records).position == position(5, 2)
    (fault,) = walked(history.restored(3).records).faults
    assert fault.found == "entry 3"


def test_a_restore_goes_on_where_the_standing_entry_ends_or_a_partition_was_born() -> None:
    first = entry_after(None, span(0, 3))
    second = entry_after(first, span(3, 8), span(4, 4, partition=1))
    third = entry_after(second, span(4, 6, partition=1))
    entries = [first, second, third]
    assert restored_position(entries, 0) == position(0, 4)
    assert restored_position(entries, 1) == position(3, 4)
    assert restored_position(entries, 2) == position(8, 4)
    assert restored_position(entries, 3) == position(8, 6)


def test_in_a_trimmed_log_a_restore_before_the_first_entry_to_what_is_gone_is_unknown() -> None:
    records = three_entries().restored(1).wrote(span(8, 9)).records
    chain = walked(records[4:])
    assert chain.standing == -1
    assert chain.faults


def test_in_a_trimmed_log_a_restore_to_before_its_beginning_halts() -> None:
    records = three_entries().did("OPTIMIZE").restored(1).records
    assert kinds(walked(records[3:])) == [TableUndone]


MOVES = st.lists(st.integers(0, 5), min_size=1, max_size=3)
OTHERS = st.sampled_from(HARMLESS)


def built(steps: Sequence[list[int] | tuple[str, dict[str, object]]]) -> History:
    """A valid history: lists move partitions 0, 1, 2 on; pairs are commits of others."""
    history = History()
    for step in steps:
        if isinstance(step, tuple):
            history.did(step[0], **step[1])
            continue
        stands = history.newest.position if history.newest else Position()
        ranges = []
        for partition, by in enumerate(step):
            start = stands.get(place(partition)) or 0
            ranges.append(span(start, start + by, partition))
        history.wrote(*ranges)
    return history


HISTORIES = st.lists(MOVES | OTHERS, max_size=14).map(built)
WITH_ENTRIES = HISTORIES.filter(lambda history: history.newest is not None)


@given(HISTORIES)
def test_any_valid_history_with_foreign_commits_in_between_has_no_fault(history: History) -> None:
    chain = walked(history.records)
    assert chain.faults == ()
    assert chain.newest == history.newest


@given(WITH_ENTRIES, st.data())
def test_any_single_change_to_an_entry_of_a_whole_log_is_a_fault(
    history: History, data: st.DataObject
) -> None:
    records = history.records
    where = [n for n, each in enumerate(records) if each.txns]
    index = data.draw(st.sampled_from(where))
    entry = Entry.from_json(records[index].user_metadata or "")
    assert entry is not None
    others = [each for n, each in enumerate(records) if n in where and n != index]
    changes: list[Callable[[], CommitRecord]] = [
        lambda: record_of_entry(index, replace(entry, sequence=entry.sequence + 1)),
        lambda: replace(records[index], txns={app_id(PIPELINE): entry.sequence + 1}),
        lambda: replace(records[index], user_metadata=None),
        lambda: record_of_entry(
            index, replace(entry, position=Position({**entry.position.offsets, place(9): 1}))
        ),
    ]
    if entry.sequence > 1:
        before = walked(records[:index]).position
        if before.get(entry.ranges[-1].topic_partition) is not None:
            changes.append(lambda: record_of_entry(index, _moved(entry, 1)))
        ours = data.draw(st.sampled_from([each.user_metadata for each in others]))
        known = Entry.from_json(ours or "")
        assert known is not None
        changes.append(lambda: record_of_entry(index, replace(entry, commit=known.commit)))
    change = data.draw(st.sampled_from(changes))
    assert walked([*records[:index], change(), *records[index + 1 :]]).faults


@given(WITH_ENTRIES, st.data())
def test_any_commit_dropped_doubled_or_swapped_is_a_fault(
    history: History, data: st.DataObject
) -> None:
    records = history.records
    index = data.draw(st.integers(0, len(records) - 1))
    doubled = [*records[: index + 1], *records[index:]]
    assert walked(doubled).faults
    if 0 < index < len(records) - 1:  # what lacks an end looks like a younger, a trimmed log
        assert walked([*records[:index], *records[index + 1 :]]).faults
    if index > 0:
        swapped = [*records[: index - 1], records[index], records[index - 1], *records[index + 1 :]]
        assert walked(swapped).faults


@given(WITH_ENTRIES, st.data())
def test_any_entry_dropped_or_doubled_in_a_log_that_looks_whole_is_a_fault(
    history: History, data: st.DataObject
) -> None:
    records = history.records
    where = [n for n, each in enumerate(records) if each.txns]
    index = data.draw(st.sampled_from(where))
    assert walked(renumbered([*records[: index + 1], *records[index:]])).faults
    if index != where[-1]:
        assert walked(renumbered([*records[:index], *records[index + 1 :]])).faults


@given(WITH_ENTRIES, st.data())
def test_a_restore_undoes_unless_the_newest_entry_stands_there_and_one_back_heals(
    history: History, data: st.DataObject
) -> None:
    newest_at = max(n for n, each in enumerate(history.records) if each.txns)
    last = history.next_version - 1
    version = data.draw(st.integers(0, last))
    history.restored(data.draw(st.sampled_from([version, str(version)])))
    chain = walked(history.records)
    assert kinds(chain) == ([] if version >= newest_at else [TableUndone])
    back = data.draw(st.integers(newest_at, last))
    assert walked(history.restored(back).records).faults == ()
    assert walked(history.wrote().records).faults == ()


# A log of which clean-up has taken the beginning


def cut(history: History, first: int) -> list[CommitRecord]:
    return [each for each in history.records if each.version >= first]


def planned_on(history: History, base: int) -> History:
    """The newest commit's entry says on which version it was planned."""
    assert history.newest is not None
    entry = replace(history.newest, base=base)
    history.records[-1] = record_of_entry(history.records[-1].version, entry)
    return history


def undone_and_undone_again() -> History:
    """Entries at 1 and 2; a RESTORE to 1 and one to 2; an entry at 5 that knew of both."""
    history = History().wrote(span(0, 3)).wrote(span(3, 6)).restored(1).restored(2)
    return planned_on(history.wrote(span(6, 9)), 4)


@pytest.mark.parametrize("first", range(6))
def test_what_was_settled_before_the_first_readable_entry_is_no_fault(first: int) -> None:
    chain = walked(cut(undone_and_undone_again(), first))
    assert (chain.faults, chain.standing) == ((), 3)


def test_a_restore_to_before_it_was_settled_is_unknown_and_not_harmless() -> None:
    (fault,) = walked(cut(undone_and_undone_again().restored(3), 3)).faults
    assert "nobody knows" in fault.found
    assert walked(cut(undone_and_undone_again().restored(4), 3)).faults[0].found == "entry 2"


def test_a_torn_entry_behind_a_cut_log_leaves_only_a_reset() -> None:
    history = History().wrote(span(0, 3)).wrote(span(3, 6)).restored(1).restored(1)
    (fault,) = walked(cut(planned_on(history.wrote(span(6, 9)), 2), 4)).faults
    assert fault.remedy == "TRUNCATE, then: rivermouth resume CONFIG orders --accept reset"


def test_an_accepted_restore_stays_accepted_when_its_target_is_cleaned_up() -> None:
    history = accepting(three_entries().restored(1), position(3), Accepted("restore", 4, 1))
    history.wrote(span(3, 9))
    for first in range(6):
        chain = walked(cut(history, first))
        assert (chain.faults, chain.position) == ((), position(9)), first
