"""Which entries a replay in place applies once more: tables of ledgers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.errors import ReplayRefused
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Accepted, Change, Changes, Deleted, Entry, RowCounts
from rivermouth.protocol.offsets import OffsetRange, Watermarks
from rivermouth.protocol.reapply import all_entries, recorded_begins, replay_draft, whole_entries
from tests.builders import TABLE, TableLog, entry_after, place, replayed, span
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit

Entries = list[Recorded]


PIPELINE = a_pipeline(keys=("id",))


def ledger(*batches: Sequence[OffsetRange]) -> Entries:
    """Entries of the pipeline, at the versions 1, 2, …"""
    found: Entries = []
    newest: Entry | None = None
    for version, ranges in enumerate(batches, 1):
        newest = replace(
            entry_after(newest, *ranges),
            config=PIPELINE.identity,
            columns=(("id", "BIGINT"),),
            decoder=PIPELINE.decoder,
        )
        found.append(Recorded(version, 0, newest))
    return found


THREE = (
    [span(10, 10), span(0, 0, 1)],
    [span(10, 14), span(0, 5, 1)],
    [span(14, 20)],
    [span(20, 22), span(5, 6, 1)],
)
"""Where the partitions begin, and three batches."""
MARKS = {place(): Watermarks(0, 99), place(1): Watermarks(0, 99)}


@pytest.mark.parametrize(
    ("asked", "since", "ranges"),
    [
        (None, 2, (span(10, 22), span(0, 6, 1))),
        ((span(10, 22),), 2, (span(10, 22), span(0, 6, 1))),
        ((span(13, 22),), 2, (span(10, 22), span(0, 6, 1))),
        ((span(14, 22),), 3, (span(14, 22), span(5, 6, 1))),
        ((span(21, 22),), 4, (span(20, 22), span(5, 6, 1))),
        ((span(21, 22), span(4, 6, 1)), 2, (span(10, 22), span(0, 6, 1))),
        ((span(5, 6, 1),), 4, (span(20, 22), span(5, 6, 1))),
        ((span(22, 22), span(5, 6, 1)), 4, (span(20, 22), span(5, 6, 1))),
    ],
)
def test_whole_entries_are_taken_from_the_first_that_is_asked_for_to_the_newest(
    asked: tuple[OffsetRange, ...] | None, since: int, ranges: tuple[OffsetRange, ...]
) -> None:
    found = whole_entries(ledger(*THREE), PIPELINE, MARKS, asked)
    assert (found.since, found.ranges) == (since, ranges)
    assert found.earliest is (since == 2)
    assert sum(one.span for _, one in found.of_entries) == sum(each.span for each in ranges)
    assert found.counts == {each.topic_partition: RowCounts(each.span, 0) for each in ranges}


def changed(index: int, **facts: Any) -> Callable[[Entries], object]:
    def change(entries: Entries) -> None:
        entry = replace(entries[index].entry, **facts)
        entries[index] = replace(entries[index], entry=entry)

    return change


def still(index: int, **facts: Any) -> Callable[[Entries], object]:
    """An entry that covers nothing, behind the one with this index."""

    def change(entries: Entries) -> None:
        newest = entries[index].entry
        quiet = replace(newest, ranges=(), rows=None, **facts)
        entries.insert(index + 1, replace(entries[index], entry=quiet))

    return change


UNLIKE: dict[str, tuple[Callable[[Entries], object], str]] = {
    "other settings": (changed(1, config={"mode": "upsert"}), "other settings"),
    "other columns": (changed(1, columns=(("id", "INT"),)), "other columns"),
    "columns that are not told": (changed(1, columns=()), "other columns"),
    "other metadata": (changed(1, metadata=("key",)), "another source.metadata"),
    "another version of the decoder": (changed(1, decoder={"version": 2}), "another version"),
    "another setting of the decoder": (
        changed(1, decoder={"lenient": ["any_case"]}),
        "other settings",
    ),
    "a change of the source": (
        still(1, changes=Changes((Change.TOPIC,))),
        "a change of the source",
    ),
    "a DELETE that was accepted": (still(3, deletes=(Deleted(3, unlisted=1),)), "version 3"),
}


@pytest.mark.parametrize("case", [*UNLIKE])
def test_entries_that_cannot_be_read_as_they_were_are_not_taken(case: str) -> None:
    entries = ledger(*THREE)
    change, why = UNLIKE[case]
    change(entries)
    found = whole_entries(entries, PIPELINE, MARKS, None)
    # What is left out may have been newer than what is taken.
    assert (found.since, found.earliest) == (3, False)
    with pytest.raises(ReplayRefused) as refused:
        whole_entries(entries, PIPELINE, MARKS, (span(11, 22),))
    assert why in refused.value.found
    assert "--from earliest" in refused.value.remedy


@pytest.mark.parametrize("case", [*UNLIKE])
def test_where_the_first_record_decides_no_entry_may_be_left_out(case: str) -> None:
    entries = ledger(*THREE)
    change, why = UNLIKE[case]
    change(entries)
    with pytest.raises(ReplayRefused, match="not all that the pipeline has read") as refused:
        all_entries(entries, PIPELINE, MARKS, None)
    assert why in refused.value.found
    assert "--into" in refused.value.remedy


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (None, ""),
        ((span(10, 22),), ""),
        ((span(21, 22), span(6, 6, 1)), ""),
        ((span(22, 22), span(6, 6, 1)), "nothing to replay"),
        ((span(9, 22),), "t-0[9,22) was not read by an entry"),
    ],
)
def test_where_the_first_record_decides_all_entries_are_taken_whatever_is_asked(
    asked: tuple[OffsetRange, ...] | None, said: str
) -> None:
    entries = ledger(*THREE)
    if not said:
        whole = whole_entries(entries, PIPELINE, MARKS, None)
        assert all_entries(entries, PIPELINE, MARKS, asked) == whole
        return
    with pytest.raises(ReplayRefused) as refused:
        all_entries(entries, PIPELINE, MARKS, asked)
    assert said in refused.value.what


def test_nothing_came_before_the_entry_that_accepts_a_reset() -> None:
    def of(accepted: Accepted) -> Entries:
        [first, *others] = ledger(*THREE)[1:]
        still = replace(first.entry, ranges=(), rows=None, accepts=accepted)
        return [replace(first, entry=still), *others]

    marks = {**MARKS, place(): Watermarks(14, 99)}
    found = all_entries(of(Accepted("reset", 3, 0)), PIPELINE, marks, None)
    assert (found.since, found.earliest) == (3, True)
    with pytest.raises(ReplayRefused, match="not all that the pipeline has read"):
        all_entries(of(Accepted("restore", 3, 1)), PIPELINE, marks, None)


def test_an_entry_that_the_log_holds_no_more_may_have_read_the_first_record() -> None:
    with pytest.raises(ReplayRefused, match="not all that the pipeline has read") as refused:
        all_entries(ledger(*THREE)[1:], PIPELINE, MARKS, None)
    assert refused.value.found == "a log that begins with entry 2"
    young = {**MARKS, place(): Watermarks(11, 99)}
    with pytest.raises(ReplayRefused, match="not all that the pipeline has read") as refused:
        all_entries(ledger(*THREE), PIPELINE, young, None)
    assert "Kafka holds offsets from 11 on" in refused.value.found


@pytest.mark.parametrize(
    ("marks", "since"),
    [
        ({**MARKS, place(): Watermarks(11, 99)}, 3),
        ({**MARKS, place(1): Watermarks(1, 99)}, 3),
        ({**MARKS, place(): Watermarks(10, 99)}, 2),
        ({**MARKS, place(): Watermarks(15, 99)}, 4),
        ({place(): Watermarks(0, 99)}, None),
    ],
)
def test_what_kafka_holds_no_more_is_not_taken(
    marks: dict[object, Watermarks], since: int | None
) -> None:
    held = {each: marks[each] for each in MARKS if each in marks}
    if since is None:
        with pytest.raises(ReplayRefused, match="nothing to replay") as refused:
            whole_entries(ledger(*THREE), PIPELINE, held, None)
        assert "t-1, which is not read any more" in refused.value.found
    else:
        assert whole_entries(ledger(*THREE), PIPELINE, held, None).since == since


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((span(9, 22),), "t-0[9,22) was not read by an entry"),
        ((span(0, 3, 7),), "t-7[0,3) was not read by an entry"),
        ((span(22, 22), span(6, 6, 1)), "nothing to replay"),
        ((), "nothing to replay"),
    ],
)
def test_what_no_entry_covers_is_refused(asked: tuple[OffsetRange, ...], said: str) -> None:
    with pytest.raises(ReplayRefused) as refused:
        whole_entries(ledger(*THREE), PIPELINE, MARKS, asked)
    assert said in refused.value.what


def test_counts_that_an_entry_does_not_tell_are_not_compared() -> None:
    entries = ledger(*THREE)
    changed(2, rows=None)(entries)
    assert whole_entries(entries, PIPELINE, MARKS, None).counts is None
    assert recorded_begins(entries) == {place(): 10, place(1): 0}


def test_the_entry_moves_no_offset_and_follows_on_the_newest() -> None:
    log = TableLog().wrote(span(0, 5)).wrote(span(5, 9))
    history = replayed(log.records)
    assert log.newest is not None
    found = whole_entries(ledger([span(0, 5)], [span(5, 9)]), PIPELINE, MARKS, None)
    draft = replay_draft(history, log.newest, TABLE, found)
    assert (draft.sequence, draft.position) == (3, log.newest.position)
    assert (draft.ranges, draft.replayed) == ((span(9, 9),), (span(0, 9),))
