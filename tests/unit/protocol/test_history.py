"""Replaying a log: what breaks its entries, what rolls them back, what heals that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Accepted, Entry
from rivermouth.protocol.entry_json import from_json
from rivermouth.protocol.history import History, Period, known_before, restored_position
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import OffsetRange, Position
from tests.builders import (
    PIPELINE,
    TableLog,
    entry_after,
    foreign,
    place,
    position,
    record_of_entry,
    renumbered,
    replayed,
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
ROLLING_BACK: list[tuple[str, dict[str, object]]] = [
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


POINTS_IN_TIME: list[dict[str, object]] = [
    {"version": None, "timestamp": "2026-11-21 08:28:34.896"},  # Spark
    {"datetime": "1795249678976"},  # deltalake
    {"version": "", "timestamp": "x"},
    {"version": "no number"},
]


def kinds(history: History) -> list[type[Halt]]:
    return [type(each) for each in history.faults]


def three_entries() -> TableLog:
    """Version 1 to 3: entry 1 to 3."""
    return TableLog().wrote(span(0, 5), span(0, 0, 1)).wrote(span(5, 8)).wrote(span(0, 4, 1))


def test_a_log_without_entries_has_a_history_at_nothing() -> None:
    history = replayed(TableLog().did("WRITE", mode="Append").records)
    assert (history.sequence, history.position, history.newest) == (0, Position(), None)
    assert history.faults == ()


def test_the_newest_entry_gives_sequence_and_position() -> None:
    history = replayed(three_entries().did("OPTIMIZE").records)
    assert (history.sequence, history.position, history.version) == (3, position(8, 4), 4)
    assert history.faults == ()


def test_a_replay_gives_the_entries_and_where_they_are_and_can_go_on() -> None:
    records = three_entries().records
    begun, first = replay(History(PIPELINE, ""), records[:3])
    assert [each.entry.sequence for each in first] == [1, 2]
    history, (last,) = replay(begun, records[3:])
    assert (last.version, last.timestamp_ms, last.entry.sequence) == (3, 3000, 3)
    assert (history.recorded, history.faults) == (last, ())
    assert (begun.sequence, begun.version) == (2, 2), "the value before has not changed"


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
        history = replayed(log, pipeline)
        assert (history.sequence, history.position, history.faults) == (2, stands, ())


def test_a_log_that_begins_above_version_0_is_believed_from_its_first_entry_on() -> None:
    records = three_entries().wrote(span(8, 9)).records
    trimmed = replayed(records[2:])
    assert (trimmed.sequence, trimmed.position, trimmed.faults) == (4, position(9, 4), ())


def test_a_log_that_begins_at_version_0_must_begin_with_sequence_1() -> None:
    records = three_entries().records
    broken = replayed(renumbered([records[0], *records[2:]]))
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
    entry = from_json(last.user_metadata or "")
    assert entry is not None
    history = replayed([*records, record_of_entry(4, change(entry))])
    assert any(said in str(each) for each in history.faults), name


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
    history = replayed([*records, change(last)])
    assert any(said in str(each) for each in history.faults), name


@pytest.mark.parametrize(("operation", "parameters"), HARMLESS)
def test_maintenance_and_changes_to_some_rows_roll_nothing_back(
    operation: str, parameters: dict[str, object]
) -> None:
    assert replayed(three_entries().did(operation, **parameters).records).faults == ()


@pytest.mark.parametrize(("operation", "parameters"), ROLLING_BACK)
def test_what_takes_all_rows_away_rolls_every_entry_back(
    operation: str, parameters: dict[str, object]
) -> None:
    history = replayed(three_entries().did(operation, **parameters).records)
    (fault,) = history.faults
    assert isinstance(fault, TableUndone)
    assert operation in fault.what
    assert (fault.expected, fault.found) == ("entry 3 to be in effect", "none")
    assert "VERSION AS OF 3" in fault.remedy


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [*ROLLING_BACK, *(("RESTORE", each) for each in ({"version": 0}, *POINTS_IN_TIME))],
)
def test_what_happened_before_our_first_entry_does_not_concern_us(
    operation: str, parameters: dict[str, object]
) -> None:
    log = TableLog().did("WRITE", mode="Append").did(operation, **parameters)
    assert replayed(log.records).faults == ()
    assert replayed(log.wrote(span(0, 5)).wrote(span(5, 6)).records).faults == ()


@pytest.mark.parametrize("parameters", POINTS_IN_TIME)
def test_a_restore_to_a_point_in_time_halts_until_a_version_is_named(
    parameters: dict[str, object],
) -> None:
    log = three_entries().did("RESTORE", **parameters)
    (fault,) = replayed(log.records).faults
    assert isinstance(fault, TableUndone)
    assert "point in time" in fault.found
    assert "VERSION AS OF 3" in fault.remedy
    assert replayed(log.restored(3).records).faults == ()


@pytest.mark.parametrize("spelled", [int, str], ids=["Spark: a number", "deltalake: a text"])
@pytest.mark.parametrize(
    ("version", "found"),
    [(0, "none"), (1, "entry 1"), (2, "entry 2"), (3, None), (4, None)],
)
def test_a_restore_rolls_back_the_entries_after_its_version(
    version: int, found: str | None, spelled: Callable[[int], object]
) -> None:
    history = replayed(three_entries().did("OPTIMIZE").restored(spelled(version)).records)
    assert [each.found for each in history.faults] == ([] if found is None else [found])


def test_the_remedy_leads_back_however_often_the_table_was_rolled_back() -> None:
    log = three_entries().did("DELETE").restored(1).did("TRUNCATE").did("DELETE")
    (fault,) = replayed(log.records).faults
    assert "DELETE at version 4" in fault.what
    assert "VERSION AS OF 3" in fault.remedy
    healed = log.restored(3)
    assert replayed(healed.records).faults == ()
    (again,) = replayed(healed.did("OPTIMIZE").did("TRUNCATE").records).faults
    assert "TRUNCATE at version 10" in again.what
    assert "VERSION AS OF 9" in again.remedy


def test_a_restore_to_a_state_with_entries_rolled_back_rolls_them_back_again() -> None:
    log = three_entries().restored(1).restored(3)
    assert replayed(log.records).faults == ()
    (fault,) = replayed(log.restored(4).records).faults
    assert fault.found == "entry 1"


def test_an_entry_over_a_rollback_is_torn_until_a_restore_to_a_state_that_was_whole() -> None:
    torn = three_entries().restored(1).wrote(span(8, 9))
    (fault,) = replayed(torn.records).faults
    assert isinstance(fault, LedgerBroken)
    assert "version 5 was written over commits that were rolled back" in fault.what
    assert "VERSION AS OF 4" in fault.remedy
    assert kinds(replayed(torn.restored(3).records)) == [TableUndone]
    assert replayed(torn.records).effective == 3
    assert kinds(replayed(torn.restored(5).records)) == [TableUndone]
    assert replayed(torn.records).effective is None, "torn again"
    assert kinds(replayed(torn.restored(4).records)) == [TableUndone]
    assert replayed(torn.records).effective == 1


def accepting(log: TableLog, at: Position, accepted: Accepted) -> TableLog:
    """An entry that accepts a rollback and goes on at ``at``."""
    here = tuple(OffsetRange(each, n, n) for each, n in at.offsets.items())
    assert log.newest is not None
    log.newest = replace(
        entry_after(log.newest), ranges=here, position=at, accepts=accepted, rows=None
    )
    log.records.append(record_of_entry(log.next_version, log.newest))
    return log


def test_an_accepted_restore_goes_on_from_what_is_in_effect() -> None:
    log = accepting(three_entries().restored(1), position(3), Accepted("restore", 4, 1))
    history = replayed(log.records)
    assert history.faults == ()
    assert (history.sequence, history.effective, history.position) == (4, 4, position(3))
    assert replayed(log.wrote(span(3, 9)).records).faults == ()


@pytest.mark.parametrize(("operation", "parameters"), [*ROLLING_BACK, ("RESTORE", {"version": 1})])
def test_a_rollback_that_the_accepting_driver_had_not_seen_is_a_fault_wherever_reading_begins(
    operation: str, parameters: dict[str, object]
) -> None:
    log = three_entries().restored(1).did(operation, **parameters)
    accepting(log, position(3), Accepted("restore", 4, 1))
    assert log.newest is not None
    entry = replace(log.newest, base=4)
    records = [*log.records[:-1], record_of_entry(6, entry)]
    for first in (0, 5):
        [fault] = replayed(records[first:]).faults
        assert "accepts what did not happen" in fault.what
    assert replayed(records[6:]).faults == ()


def test_a_table_that_is_emptied_before_its_new_beginning_is_accepted_has_lost_nothing() -> None:
    log = TableLog().did("TRUNCATE")
    entry = replace(entry_after(None, span(3, 3)), accepts=Accepted("reset", 0, 0), base=0)
    assert replayed([log.records[1], record_of_entry(2, entry)]).faults == ()


def test_what_was_rolled_back_is_not_in_effect_even_after_it_was_accepted() -> None:
    def rests_on(log: TableLog, first: int = 0) -> set[int]:
        history, entries = replay(History(PIPELINE, ""), log.records[first:])
        return history.effective_sequences(entries)

    log = three_entries()
    assert rests_on(log) == {1, 2, 3}
    assert rests_on(log, 3) == {2, 3}, "and the last that clean-up took"
    assert rests_on(log.restored(1)) == {1}
    accepting(log, position(3), Accepted("restore", 4, 1)).wrote(span(3, 9))
    assert rests_on(log) == {1, 4, 5}
    assert rests_on(log.did("TRUNCATE")) == set()
    accepting(log, position(0), Accepted("reset", log.next_version - 1, 0))
    assert rests_on(log) == {6}


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
    log = accepting(three_entries().restored(1), at, accepted)
    assert LedgerBroken in kinds(replayed(log.records))


def test_a_reset_may_go_on_anywhere_and_a_restore_to_before_it_rolls_it_back() -> None:
    log = accepting(three_entries().did("TRUNCATE"), position(5, 2), Accepted("reset", 4, 0))
    assert replayed(log.records).faults == ()
    assert replayed(log.records).position == position(5, 2)
    (fault,) = replayed(log.restored(3).records).faults
    assert fault.found == "entry 3"


def test_a_restore_goes_on_where_the_entry_in_effect_ends_or_a_partition_was_discovered() -> None:
    first = entry_after(None, span(0, 3))
    second = entry_after(first, span(3, 8), span(4, 4, partition=1))
    third = entry_after(second, span(4, 6, partition=1))
    entries = [first, second, third]
    assert restored_position(entries, 0, lambda *_: True) == position(0, 4)
    assert restored_position(entries, 1, lambda *_: True) == position(3, 4)
    assert restored_position(entries, 2, lambda *_: True) == position(8, 4)
    assert restored_position(entries, 3, lambda *_: True) == position(8, 6)


def test_in_a_trimmed_log_a_restore_before_the_first_entry_to_what_is_gone_is_unknown() -> None:
    records = three_entries().restored(1).wrote(span(8, 9)).records
    history = replayed(records[4:])
    assert history.effective is None
    assert history.faults


def test_in_a_trimmed_log_a_restore_to_before_its_beginning_halts() -> None:
    records = three_entries().did("OPTIMIZE").restored(1).records
    assert kinds(replayed(records[3:])) == [TableUndone]


MOVES = st.lists(st.integers(0, 5), min_size=1, max_size=3)
OTHERS = st.sampled_from(HARMLESS)


def built(steps: Sequence[list[int] | tuple[str, dict[str, object]]]) -> TableLog:
    """A valid log: lists move partitions 0, 1, 2 on; pairs are commits of others."""
    log = TableLog()
    for step in steps:
        if isinstance(step, tuple):
            log.did(step[0], **step[1])
            continue
        stands = log.newest.position if log.newest else Position()
        ranges = []
        for partition, by in enumerate(step):
            start = stands.get(place(partition)) or 0
            ranges.append(span(start, start + by, partition))
        log.wrote(*ranges)
    return log


LOGS = st.lists(MOVES | OTHERS, max_size=14).map(built)
WITH_ENTRIES = LOGS.filter(lambda log: log.newest is not None)


@given(LOGS)
def test_any_valid_history_with_foreign_commits_in_between_has_no_fault(log: TableLog) -> None:
    history = replayed(log.records)
    assert history.faults == ()
    assert history.newest == log.newest


@given(WITH_ENTRIES, st.data())
def test_any_single_change_to_an_entry_of_a_whole_log_is_a_fault(
    log: TableLog, data: st.DataObject
) -> None:
    records = log.records
    where = [n for n, each in enumerate(records) if each.txns]
    index = data.draw(st.sampled_from(where))
    entry = from_json(records[index].user_metadata or "")
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
        before = replayed(records[:index]).position
        if before.get(entry.ranges[-1].topic_partition) is not None:
            changes.append(lambda: record_of_entry(index, _moved(entry, 1)))
        ours = data.draw(st.sampled_from([each.user_metadata for each in others]))
        known = from_json(ours or "")
        assert known is not None
        changes.append(lambda: record_of_entry(index, replace(entry, commit=known.commit)))
    change = data.draw(st.sampled_from(changes))
    assert replayed([*records[:index], change(), *records[index + 1 :]]).faults


@given(WITH_ENTRIES, st.data())
def test_any_commit_dropped_doubled_or_swapped_is_a_fault(
    log: TableLog, data: st.DataObject
) -> None:
    records = log.records
    index = data.draw(st.integers(0, len(records) - 1))
    doubled = [*records[: index + 1], *records[index:]]
    assert replayed(doubled).faults
    if 0 < index < len(records) - 1:  # what lacks an end looks like a younger, a trimmed log
        assert replayed([*records[:index], *records[index + 1 :]]).faults
    if index > 0:
        swapped = [*records[: index - 1], records[index], records[index - 1], *records[index + 1 :]]
        assert replayed(swapped).faults


@given(WITH_ENTRIES, st.data())
def test_any_entry_dropped_or_doubled_in_a_log_that_looks_whole_is_a_fault(
    log: TableLog, data: st.DataObject
) -> None:
    records = log.records
    where = [n for n, each in enumerate(records) if each.txns]
    index = data.draw(st.sampled_from(where))
    assert replayed(renumbered([*records[: index + 1], *records[index:]])).faults
    if index != where[-1]:
        assert replayed(renumbered([*records[:index], *records[index + 1 :]])).faults


@given(WITH_ENTRIES, st.data())
def test_a_restore_rolls_back_unless_it_keeps_the_newest_entry_and_one_back_heals(
    log: TableLog, data: st.DataObject
) -> None:
    newest_at = max(n for n, each in enumerate(log.records) if each.txns)
    last = log.next_version - 1
    version = data.draw(st.integers(0, last))
    log.restored(data.draw(st.sampled_from([version, str(version)])))
    history = replayed(log.records)
    assert kinds(history) == ([] if version >= newest_at else [TableUndone])
    back = data.draw(st.integers(newest_at, last))
    assert replayed(log.restored(back).records).faults == ()
    assert replayed(log.wrote().records).faults == ()


# From version 2 on nothing was in effect, from 4 on entry 1, from 7 on nobody knows, from 9 on 2.
PERIODS = Period(9, 2, Period(7, None, Period(4, 1, Period(2, 0))))


@pytest.mark.parametrize(
    ("before", "version"), [(12, 11), (10, 9), (9, 4), (8, 4), (7, 6), (5, 4), (3, 2), (2, None)]
)
def test_the_way_back_leads_to_the_newest_version_of_which_the_log_tells(
    before: int, version: int | None
) -> None:
    assert known_before(PERIODS, before) == version
    assert known_before(None, before) is None


# A log of which clean-up has taken the beginning


def cut(log: TableLog, first: int) -> list[CommitRecord]:
    return [each for each in log.records if each.version >= first]


def planned_on(log: TableLog, base: int) -> TableLog:
    """The newest commit's entry says on which version it was planned."""
    assert log.newest is not None
    entry = replace(log.newest, base=base)
    log.records[-1] = record_of_entry(log.records[-1].version, entry)
    return log


def rolled_back_twice() -> TableLog:
    """Entries at 1 and 2; a RESTORE to 1 and one to 2; an entry at 5 that knew of both."""
    log = TableLog().wrote(span(0, 3)).wrote(span(3, 6)).restored(1).restored(2)
    return planned_on(log.wrote(span(6, 9)), 4)


@pytest.mark.parametrize("first", range(6))
def test_what_was_settled_before_the_first_readable_entry_is_no_fault(first: int) -> None:
    history = replayed(cut(rolled_back_twice(), first))
    assert (history.faults, history.effective) == ((), 3)


def test_a_restore_to_before_it_was_settled_is_unknown_and_not_harmless() -> None:
    (fault,) = replayed(cut(rolled_back_twice().restored(3), 3)).faults
    assert "nobody knows" in fault.found
    assert replayed(cut(rolled_back_twice().restored(4), 3)).faults[0].found == "entry 2"


def test_a_torn_entry_behind_a_cut_log_leaves_only_a_reset() -> None:
    log = TableLog().wrote(span(0, 3)).wrote(span(3, 6)).restored(1).restored(1)
    (fault,) = replayed(cut(planned_on(log.wrote(span(6, 9)), 2), 4)).faults
    assert fault.remedy == "TRUNCATE, then: rivermouth resume CONFIG orders --accept reset"


def test_an_accepted_restore_stays_accepted_when_its_target_is_cleaned_up() -> None:
    log = accepting(three_entries().restored(1), position(3), Accepted("restore", 4, 1))
    log.wrote(span(3, 9))
    for first in range(6):
        history = replayed(cut(log, first))
        assert (history.faults, history.position) == ((), position(9)), first


def test_a_restore_to_what_clean_up_took_was_harmless_where_a_later_driver_went_on() -> None:
    log = TableLog().wrote(span(0, 3)).wrote(span(3, 5)).did("OPTIMIZE").restored(2)
    assert log.newest is not None
    third = replace(entry_after(log.newest, span(5, 6)), base=3)
    fourth = replace(entry_after(third, span(6, 7)), base=5)
    records = [*log.records, record_of_entry(5, third), record_of_entry(6, fourth)]
    assert replayed(records).faults == ()
    [fault] = replayed(records[3:6]).faults
    assert "version 5 was written over commits" in fault.what, "nobody can tell yet"
    history = replayed(records[3:])
    assert history.faults == ()
    assert history.effective == 4
