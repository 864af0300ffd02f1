"""How a micro-batch lies to the ledger, and what follows: tables of values, and properties."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import Halt, OffsetGap, OffsetOverlap
from rivermouth.protocol.batches import Action, Relation, decide, relate
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from tests.builders import PIPELINE, entry_after, place, span

pytestmark = pytest.mark.unit

LAST = span(10, 20)


@pytest.mark.parametrize(
    ("offered", "last", "relation"),
    [
        (span(0, 5), None, Relation.PARTITION_ADDED),
        (span(7, 7), None, Relation.PARTITION_ADDED),
        (span(20, 25), LAST, Relation.NEW),
        (span(20, 20), LAST, Relation.NEW),
        (span(21, 25), LAST, Relation.GAP),
        (span(21, 21), LAST, Relation.GAP),
        (span(10, 20), LAST, Relation.SAME),
        (span(10, 15), LAST, Relation.PREFIX),
        (span(15, 20), LAST, Relation.SUFFIX),
        (span(12, 18), LAST, Relation.CONTAINS),
        (span(12, 12), LAST, Relation.CONTAINS),
        (span(5, 15), LAST, Relation.OVERLAP),
        (span(15, 25), LAST, Relation.OVERLAP),
        (span(5, 25), LAST, Relation.OVERLAP),
        (span(10, 21), LAST, Relation.OVERLAP),
        (span(9, 20), LAST, Relation.OVERLAP),
        (span(0, 5), LAST, Relation.BEHIND),
        (span(5, 10), LAST, Relation.BEHIND),
        (span(10, 10), LAST, Relation.BEHIND),
        # Where only the position is known, it is the empty range there.
        (span(20, 25), span(20, 20), Relation.NEW),
        (span(20, 20), span(20, 20), Relation.NEW),
        (span(15, 20), span(20, 20), Relation.BEHIND),
        (span(15, 25), span(20, 20), Relation.OVERLAP),
        (span(21, 25), span(20, 20), Relation.GAP),
        (span(0, 5), span(0, 0), Relation.NEW),
    ],
    ids=str,
)
def test_a_range_lies_to_the_last_recorded_one_in_exactly_one_way(
    offered: OffsetRange, last: OffsetRange | None, relation: Relation
) -> None:
    assert relate(offered, last) is relation


NEWEST = entry_after(entry_after(None, span(0, 0), span(0, 8, 1)), span(0, 5))


@pytest.mark.parametrize(
    ("name", "newest", "ranges", "action", "halt"),
    [
        ("nothing", NEWEST, [], Action.PROCEED, None),
        ("the first batch ever", None, [span(3, 9)], Action.PROCEED, None),
        ("it goes on", NEWEST, [span(5, 9), span(8, 9, 1)], Action.PROCEED, None),
        ("one partition goes on", NEWEST, [span(8, 9, 1)], Action.PROCEED, None),
        ("a partition was added", NEWEST, [span(5, 9), span(0, 4, 2)], Action.PROCEED, None),
        ("an empty partition was added", NEWEST, [span(0, 0, 2)], Action.PROCEED, None),
        ("exactly what is recorded", NEWEST, [span(0, 5)], Action.SKIP, None),
        ("recorded and more", NEWEST, [span(0, 5), span(8, 9, 1)], Action.HALT, OffsetOverlap),
        ("a part of what is recorded", NEWEST, [span(0, 4)], Action.HALT, OffsetOverlap),
        ("partly recorded", NEWEST, [span(4, 9)], Action.HALT, OffsetOverlap),
        ("long recorded", NEWEST, [span(0, 8, 1)], Action.HALT, OffsetOverlap),
        ("a gap", NEWEST, [span(6, 9)], Action.HALT, OffsetGap),
        ("one right, one gap", NEWEST, [span(5, 9), span(9, 12, 1)], Action.HALT, OffsetGap),
        ("a partition twice", NEWEST, [span(5, 9), span(5, 9)], Action.HALT, OffsetOverlap),
        ("a new partition twice", None, [span(0, 4), span(0, 4)], Action.HALT, OffsetOverlap),
        ("a new partition with a hole", None, [span(0, 4), span(5, 6)], Action.HALT, OffsetGap),
    ],
)
def test_a_micro_batch_proceeds_is_skipped_or_halts(
    name: str,
    newest: Entry | None,
    ranges: list[OffsetRange],
    action: Action,
    halt: type[Halt] | None,
) -> None:
    decision = decide(PIPELINE, ranges, newest)
    assert decision.action is action, name
    assert (type(decision.halt) if decision.halt else None) is halt, name


def test_an_entry_of_empty_ranges_alone_is_not_done_twice() -> None:
    born = entry_after(None, span(7, 7), span(0, 0, 1))
    assert decide(PIPELINE, born.ranges, born).action is Action.SKIP
    assert decide(PIPELINE, [span(7, 9)], born).action is Action.PROCEED


def test_a_halt_names_partition_expected_and_found() -> None:
    halt = decide(PIPELINE, [span(6, 9)], NEWEST).halt
    assert halt is not None
    assert halt.where == "orders t-0"
    assert (halt.expected, halt.found) == ("a start at 5", "a start at 6")


BATCHES = st.lists(
    st.dictionaries(st.integers(0, 3), st.integers(0, 4), min_size=1, max_size=4), max_size=8
)


def following(newest: Entry | None, batch: Mapping[int, int]) -> list[OffsetRange]:
    stands = newest.position if newest else Position()
    starts = {partition: stands.get(place(partition)) or 0 for partition in batch}
    return [span(starts[n], starts[n] + by, n) for n, by in sorted(batch.items())]


@given(BATCHES)
def test_what_is_accepted_is_contiguous_and_no_offset_is_accepted_twice(
    batches: list[dict[int, int]],
) -> None:
    newest: Entry | None = None
    accepted: list[tuple[TopicPartition, int]] = []
    for batch in batches:
        ranges = following(newest, batch)
        decision = decide(PIPELINE, ranges, newest)
        if decision.action is Action.SKIP:  # nothing but empty ranges, again
            assert sum(each.span for each in ranges) == 0
            continue
        assert decision.action is Action.PROCEED
        for each in ranges:
            accepted += [
                (each.topic_partition, n) for n in range(each.from_offset, each.until_offset)
            ]
        newest = entry_after(newest, *ranges)
    assert len(set(accepted)) == len(accepted)
    stands = newest.position if newest else Position()
    whole = [(each, n) for each, until in stands.offsets.items() for n in range(until)]
    assert sorted(accepted) == whole


@given(
    BATCHES,
    st.dictionaries(st.integers(0, 3), st.integers(0, 4), min_size=1),
    st.integers(-6, 6).filter(bool),
    st.data(),
)
def test_a_range_that_starts_elsewhere_never_proceeds(
    batches: list[dict[int, int]], last: dict[int, int], by: int, data: st.DataObject
) -> None:
    newest: Entry | None = entry_after(None, *(span(0, 0, n) for n in range(4)))
    for batch in batches:
        newest = entry_after(newest, *following(newest, batch))
    ranges = following(newest, last)
    index = data.draw(st.integers(0, len(ranges) - 1))
    right = ranges[index]
    start = max(0, right.from_offset + by)
    if start == right.from_offset:
        return
    wrong = OffsetRange(right.topic_partition, start, max(start, right.until_offset))
    offered = [*ranges[:index], wrong, *ranges[index + 1 :]]
    assert decide(PIPELINE, offered, newest).action is not Action.PROCEED
