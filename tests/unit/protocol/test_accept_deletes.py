"""Which DELETEs of others can be accepted, and what the entry says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import LedgerBroken, ResumeRefused
from rivermouth.protocol.accept_deletes import (
    DeleteInEffect,
    deleted,
    deletes_draft,
    deletes_in_effect,
)
from rivermouth.protocol.commits import CommitRecord
from rivermouth.protocol.drafts import still_draft
from rivermouth.protocol.entry import (
    Accepted,
    Change,
    Changes,
    Deleted,
    Draft,
    RowCounts,
    from_listed,
    listed,
    portions,
)
from rivermouth.protocol.entry_json import from_json, to_json
from rivermouth.protocol.history import History
from rivermouth.protocol.offsets import OffsetRange, Position
from tests.builders import (
    PIPELINE,
    TABLE,
    TableLog,
    foreign,
    place,
    position,
    record_of_entry,
    replayed,
    span,
)

pytestmark = pytest.mark.unit

SOME = {"predicate": '["(id = 1)"]'}


def a_log() -> TableLog:
    """Versions 1 and 2 are entries over [0,5) and [5,9) of two partitions, 3 a DELETE of rows."""
    log = TableLog().wrote(span(0, 5), span(0, 5, 1)).wrote(span(5, 9), span(5, 9, 1))
    return log.did("DELETE", **SOME)


def accepting(log: TableLog, *deletes: Deleted) -> TableLog:
    """The log with an entry that accepts them."""
    history = replayed(log.records)
    entry = deletes_draft(history, TABLE, deletes).entry("accepting", history.version, None)
    log.records.append(record_of_entry(log.next_version, entry))
    log.newest = entry
    return log


def standing(log: TableLog, *versions: int) -> tuple[DeleteInEffect, ...]:
    history = replayed(log.records)
    return deletes_in_effect(log.records[min(versions) :], history, versions)


def of_ours() -> TableLog:
    """The log with an entry that came in a DELETE."""
    log = a_log().wrote(span(9, 10))
    log.records[-1] = replace(log.records[-1], operation="DELETE", parameters=SOME)
    return log


# Which DELETEs stand


def test_a_delete_of_others_stands_with_what_entries_have_accepted_of_it() -> None:
    [found] = standing(a_log(), 3)
    assert (found.commit.version, found.accepted) == (3, ())
    took = Deleted(3, (span(2, 4),))
    log = accepting(a_log(), took).wrote(span(9, 10)).did("DELETE", **SOME)
    assert [each.accepted for each in standing(log, 3, 6)] == [(took,), ()]
    assert replayed(log.records).faults == (), "for a run it is an ordinary entry"


@pytest.mark.parametrize(
    ("make", "version", "found"),
    [
        (a_log, 2, "WRITE with an entry"),
        (a_log, 9, "version 3 at its end"),
        (of_ours, 4, "DELETE with an entry"),
        (lambda: a_log().did("UPDATE", **SOME), 4, "UPDATE"),
        (lambda: a_log().did("MERGE", **SOME), 4, "MERGE"),
        (lambda: a_log().did("DELETE", predicate="[]"), 4, "which is a reset"),
        (lambda: a_log().restored(2), 3, "rolled back since"),
        (lambda: a_log().did("TRUNCATE"), 3, "rolled back since"),
        (lambda: a_log().restored(3).restored(2), 3, "rolled back since"),
        (lambda: a_log().restored(None), 3, "rolled back since"),
    ],
)
def test_what_is_no_standing_delete_of_some_rows_is_refused(
    make: Callable[[], TableLog], version: int, found: str
) -> None:
    log = make()
    with pytest.raises(ResumeRefused) as refused:
        standing(log, version)
    assert found in refused.value.found
    assert f"version {version} " in refused.value.what


@pytest.mark.parametrize(
    "then",
    [
        lambda log: log.restored(3),
        lambda log: log.did("OPTIMIZE").restored(2).restored(4),
        lambda log: log.did("DELETE", **SOME).restored(3),
    ],
)
def test_a_delete_stands_after_a_restore_that_leads_back_to_it(
    then: Callable[[TableLog], TableLog],
) -> None:
    assert [each.commit.version for each in standing(then(a_log()), 3)] == [3]


def test_an_acceptance_that_a_restore_took_back_counts_no_more() -> None:
    log = accepting(a_log(), Deleted(3, (span(2, 4),))).restored(3)
    [found] = standing(log, 3)
    assert found.accepted == ()


def test_a_delete_that_clean_up_took_from_the_log_is_refused() -> None:
    log = a_log().wrote(span(9, 10))
    history = replayed(log.records)
    with pytest.raises(ResumeRefused, match="version 3 cannot be accepted"):
        deletes_in_effect(log.records[4:], history, [3])


def replaying(log: TableLog, *ranges: OffsetRange) -> TableLog:
    """The log with an entry that applied ``ranges`` once more."""
    history = replayed(log.records)
    assert history.newest is not None
    draft = replace(still_draft(history, history.newest, TABLE), replayed=ranges)
    entry = draft.entry(f"replaying-{log.next_version}", history.version, None)
    log.records.append(record_of_entry(log.next_version, entry))
    log.newest = entry
    return log


def test_rows_that_a_replay_brought_back_are_not_accepted_as_deleted() -> None:
    log = replaying(replaying(a_log(), span(3, 9)).did("DELETE", **SOME), span(4, 9, 1))
    first, second = standing(log, 3, 5)
    assert (first.replayed, second.replayed) == ((span(3, 9), span(4, 9, 1)), (span(4, 9, 1),))
    history = replayed(log.records)
    assert history.faults == (), "for a run it is an ordinary entry"
    assert deleted(first, history, [span(2, 4)]) == Deleted(3, (span(2, 3),))
    assert deleted(second, history, [span(2, 4)]) == Deleted(5, (span(2, 4),))
    for rows, found in (([span(3, 4)], "brought its rows back"), (None, "may have brought")):
        with pytest.raises(ResumeRefused) as refused:
            deleted(first, history, rows)
        assert found in refused.value.found


# What is left to accept


def a_delete(number: int | None = None, *accepted: Deleted) -> DeleteInEffect:
    return DeleteInEffect(replace(foreign(3, "DELETE", SOME), deleted_rows=number), accepted)


HISTORY: History = replayed(a_log().records)


@pytest.mark.parametrize(
    ("delete", "rows", "left"),
    [
        (a_delete(), [span(2, 4)], Deleted(3, (span(2, 4),))),
        (a_delete(9), [span(2, 4)], Deleted(3, (span(2, 4),))),
        # of a neighbour, or not yet read by this pipeline
        (
            a_delete(),
            [span(1, 2), span(8, 12), span(9, 10), span(0, 1, topic="u")],
            Deleted(3, (span(1, 2), span(8, 9))),
        ),
        # a kill came between two entries
        (
            a_delete(9, Deleted(3, (span(1, 2),))),
            [span(1, 2), span(4, 5)],
            Deleted(3, (span(4, 5),)),
        ),
        (a_delete(7), None, Deleted(3, unlisted=7)),
        # a kill came between two entries, and then VACUUM
        (a_delete(7, Deleted(3, (span(1, 3),))), None, Deleted(3, unlisted=5)),
    ],
)
def test_what_is_left_to_accept_are_the_pipelines_own_rows(
    delete: DeleteInEffect, rows: Sequence[OffsetRange] | None, left: Deleted
) -> None:
    assert deleted(delete, HISTORY, rows) == left


@pytest.mark.parametrize(
    ("delete", "rows", "found"),
    [
        (a_delete(), [], "no row of this pipeline"),
        (a_delete(), [span(0, 1, topic="u")], "no row of this pipeline"),
        (a_delete(), None, "tells no number"),
        (a_delete(0), None, "tells no number"),
        (a_delete(2, Deleted(3, (span(1, 2),))), [span(1, 2)], "accepted already"),
        (a_delete(2, Deleted(3, unlisted=2)), [span(1, 2)], "accepted already"),
        (a_delete(2, Deleted(3, unlisted=2)), None, "accepted already"),
        (a_delete(2, Deleted(3, (span(1, 3),))), None, "accepted already"),
    ],
)
def test_where_nothing_is_left_to_accept_it_is_refused(
    delete: DeleteInEffect, rows: Sequence[OffsetRange] | None, found: str
) -> None:
    with pytest.raises(ResumeRefused) as refused:
        deleted(delete, HISTORY, rows)
    assert found in refused.value.found


@pytest.mark.parametrize(("kind", "left"), [("topic", (span(2, 40),)), ("identity", (span(2, 9),))])
def test_rows_of_a_former_topic_may_lie_beyond_the_position(
    kind: str, left: tuple[OffsetRange, ...]
) -> None:
    recorded = HISTORY.recorded
    assert recorded is not None
    told = replace(recorded.entry, accepted=((kind, 1),))
    history = replace(HISTORY, recorded=replace(recorded, entry=told))
    rows = [span(2, 40), span(0, 5, topic="u")]
    assert deleted(a_delete(), history, rows) == Deleted(3, left)


def test_where_there_is_no_entry_nothing_can_be_accepted() -> None:
    with pytest.raises(ResumeRefused, match="no entry"):
        deletes_draft(History(PIPELINE, ""), TABLE, ())


# The entry


def test_the_entry_moves_no_offset_and_says_the_rest_as_the_newest_does() -> None:
    draft = deletes_draft(HISTORY, TABLE, (Deleted(3, (span(2, 4),)),))
    newest = HISTORY.newest
    assert newest is not None
    assert draft.position == newest.position
    assert {each.span for each in draft.ranges} == {0}
    assert (draft.sequence, draft.config, draft.topics) == (3, newest.config, newest.topics)


def test_the_entry_repeats_each_field_of_the_newest_but_what_concerned_its_commit_alone() -> None:
    recorded = HISTORY.recorded
    assert recorded is not None
    told = replace(
        recorded.entry,
        ranges=(span(9, 9, 1),),
        lost=(span(9, 9, 1),),
        accepts=Accepted("restore", 3, 1),
        changes=Changes((Change.TOPIC,)),
        accepted=(("topic", 1),),
        deletes=(Deleted(1, unlisted=1),),
        replayed=(span(5, 9, 1),),
        epochs={place(): 3},
        ends=position(20, 30),
        columns=(("id", "BIGINT"),),
        decoder={"version": 2},
        metadata=("key",),
        transform="shop.rows:clean",
        explode=True,
        rows=(RowCounts(1, 0),),
    )
    history = replace(HISTORY, recorded=replace(recorded, entry=told))
    deletes = (Deleted(3, (span(2, 4),)),)
    new = {"sequence": 3, "table": "moved", "ranges": (span(9, 9), span(9, 9, 1))}
    once = {**new, "lost": (), "accepts": None, "changes": None, "deletes": deletes, "replayed": ()}
    draft = deletes_draft(history, "moved", deletes)
    for each in fields(Draft):
        value = getattr(told, each.name)
        assert value not in (None, 0, "", (), {}, Position()), f"give {each.name} a value here"
        assert getattr(draft, each.name) == once.get(each.name, value), each.name


def test_deleted_rows_are_told_in_few_numbers() -> None:
    rows = (span(5, 7), span(14, 15), span(3, 4, 1))
    told = listed(Deleted(12, rows))
    assert json.dumps(told) == ('{"version": 12, "rows": {"t": {"0": [5, 2, 7, 1], "1": [3, 1]}}}')
    assert from_listed(told) == Deleted(12, rows)
    assert listed(Deleted(15, unlisted=3)) == {"version": 15, "unlisted": 3}


RUNS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=9)


@given(RUNS, st.integers(1, 4))
def test_portions_hold_every_run_once_and_come_back_from_their_text(
    runs: list[tuple[int, int]], most: int
) -> None:
    at, rows = 0, list[OffsetRange]()
    for skipped, taken in runs:
        rows.append(span(at + skipped, at + skipped + taken))
        at += skipped + taken
    first, second = Deleted(3, tuple(rows)), Deleted(4, unlisted=2)
    found = [*portions([second, first, second], most)]
    assert [run for each in found for one in each for run in one.rows] == rows
    assert [one for each in found for one in each if one.unlisted] == [second, second]
    assert all(sum(len(one.rows) for one in each) <= most for each in found)
    for each in found:
        entry = deletes_draft(HISTORY, TABLE, each).entry("c", 3, None)
        assert from_json(to_json(entry)) == entry


def test_a_full_entry_stays_small() -> None:
    rows = tuple(span(4_000_000_000 + n * 12_345, 4_000_000_001 + n * 12_345) for n in range(5000))
    [portion] = portions([Deleted(3, rows)])
    text = to_json(deletes_draft(HISTORY, TABLE, portion).entry("c", 3, None))
    assert len(text) < 60_000


@pytest.mark.parametrize(
    "told",
    [
        {"version": 3},
        {"version": 3, "unlisted": -1},
        {"version": 3, "unlisted": 1, "rows": {"t": {"0": [1, 1]}}},
        {"version": 3, "rows": {"t": {"0": [1]}}},
        {"version": 3, "rows": {"t": {"0": [1, -1]}}},
        {"version": 3, "rows": {"t": {"0": ["1", 1]}}},
        {"rows": {"t": {"0": [1, 1]}}},
        3,
    ],
)
def test_what_cannot_be_read_of_deletes_is_a_broken_ledger(told: object) -> None:
    entry = deletes_draft(HISTORY, TABLE, ()).entry("c", 3, None)
    text = json.dumps({**json.loads(to_json(entry)), "deletes": [told]})
    with pytest.raises(LedgerBroken):
        from_json(text)


def test_an_entry_of_deletes_covers_no_offsets() -> None:
    record: CommitRecord = a_log().records[2]
    text = json.dumps(
        {**json.loads(str(record.user_metadata)), "deletes": [{"version": 3, "unlisted": 1}]}
    )
    with pytest.raises(LedgerBroken, match="covers no offsets"):
        from_json(text)
