"""How a micro-batch lies to the ledger, and which one halts: tables of values, and properties."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import Halt, OffsetGap, OffsetOverlap
from rivermouth.protocol.batches import misplaced, relation
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from tests.builders import PIPELINE, entry_after, place, span

pytestmark = pytest.mark.unit

LAST = span(10, 20)


@pytest.mark.parametrize(
    ("offered", "last", "said"),
    [
        (span(21, 25), LAST, "starts after the position"),
        (span(21, 21), LAST, "starts after the position"),
        (span(10, 20), LAST, "exactly the last recorded range"),
        (span(10, 15), LAST, "the first part of the last recorded range"),
        (span(15, 20), LAST, "the last part of the last recorded range"),
        (span(12, 18), LAST, "inside the last recorded range"),
        (span(12, 12), LAST, "inside the last recorded range"),
        (span(5, 15), LAST, "partly recorded, partly new"),
        (span(15, 25), LAST, "partly recorded, partly new"),
        (span(5, 25), LAST, "partly recorded, partly new"),
        (span(10, 21), LAST, "partly recorded, partly new"),
        (span(9, 20), LAST, "partly recorded, partly new"),
        (span(0, 5), LAST, "wholly before the last recorded range"),
        (span(5, 10), LAST, "wholly before the last recorded range"),
        (span(10, 10), LAST, "wholly before the last recorded range"),
        # Where only the position is known, it is the empty range there.
        (span(15, 20), span(20, 20), "wholly before the last recorded range"),
        (span(15, 25), span(20, 20), "partly recorded, partly new"),
        (span(21, 25), span(20, 20), "starts after the position"),
    ],
    ids=str,
)
def test_a_halt_says_how_a_range_lies_to_the_last_recorded_one(
    offered: OffsetRange, last: OffsetRange, said: str
) -> None:
    assert relation(offered, last) == said


NEWEST = entry_after(entry_after(None, span(0, 0), span(0, 8, 1)), span(0, 5))


@pytest.mark.parametrize(
    ("name", "newest", "ranges", "halt"),
    [
        ("nothing", NEWEST, [], None),
        ("the first batch ever", None, [span(3, 9)], None),
        ("it goes on", NEWEST, [span(5, 9), span(8, 9, 1)], None),
        ("one partition goes on", NEWEST, [span(8, 9, 1)], None),
        ("a partition was added", NEWEST, [span(5, 9), span(0, 4, 2)], None),
        ("an empty partition was added", NEWEST, [span(0, 0, 2)], None),
        ("an empty range at the position", NEWEST, [span(5, 5)], None),
        ("exactly what is recorded", NEWEST, [span(0, 5)], OffsetOverlap),
        ("recorded and more", NEWEST, [span(0, 5), span(8, 9, 1)], OffsetOverlap),
        ("a part of what is recorded", NEWEST, [span(0, 4)], OffsetOverlap),
        ("partly recorded", NEWEST, [span(4, 9)], OffsetOverlap),
        ("long recorded", NEWEST, [span(0, 8, 1)], OffsetOverlap),
        ("a gap", NEWEST, [span(6, 9)], OffsetGap),
        ("one right, one gap", NEWEST, [span(5, 9), span(9, 12, 1)], OffsetGap),
        ("a partition twice", NEWEST, [span(5, 9), span(5, 9)], OffsetOverlap),
        ("a new partition twice", None, [span(0, 4), span(0, 4)], OffsetOverlap),
        ("a new partition with a hole", None, [span(0, 4), span(5, 6)], OffsetGap),
    ],
)
def test_a_micro_batch_halts_unless_each_range_starts_at_the_position(
    name: str, newest: Entry | None, ranges: list[OffsetRange], halt: type[Halt] | None
) -> None:
    found = misplaced(PIPELINE, ranges, newest)
    assert (None if found is None else type(found)) is halt, name


def test_a_halt_names_partition_expected_and_found() -> None:
    halt = misplaced(PIPELINE, [span(6, 9)], NEWEST)
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
        assert misplaced(PIPELINE, ranges, newest) is None
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
def test_a_range_that_starts_elsewhere_always_halts(
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
    assert misplaced(PIPELINE, offered, newest) is not None
