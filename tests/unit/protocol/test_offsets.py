"""The nouns: what a range and a position are, and what they refuse to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from tests.builders import place, position, span

pytestmark = pytest.mark.unit

TOPICS = st.sampled_from(["a", "b.c", "d-e_f"])
PLACES = st.builds(TopicPartition, TOPICS, st.integers(0, 40))
POSITIONS = st.dictionaries(PLACES, st.integers(0, 2**62)).map(Position)


@pytest.mark.parametrize(("start", "until"), [(-1, 0), (-2, -1), (1, 0), (0, -1)])
def test_a_range_that_is_negative_or_runs_backwards_does_not_exist(start: int, until: int) -> None:
    with pytest.raises(ValueError, match="not a half-open offset range"):
        span(start, until)


def test_ranges_and_partitions_sort_by_topic_then_number() -> None:
    unsorted = [span(0, 1, 10), span(0, 1, 2), span(0, 1, 3, "a"), span(5, 6, 2)]
    expected = [span(0, 1, 3, "a"), span(0, 1, 2), span(5, 6, 2), span(0, 1, 10)]
    assert sorted(unsorted) == expected


def test_positions_are_equal_when_they_say_the_same_whatever_the_order() -> None:
    one = Position({place(1): 4, place(0): 3})
    other = Position({place(0): 3, place(1): 4})
    assert one == other
    assert list(one) == [place(0), place(1)]
    assert one != position(3, 5)


def test_a_position_keeps_nothing_of_the_mapping_it_was_made_from() -> None:
    mapping = {place(0): 3}
    made = Position(mapping)
    mapping[place(0)] = 9
    assert made.get(place(0)) == 3


def test_a_position_refuses_a_negative_offset() -> None:
    with pytest.raises(ValueError, match="not a position"):
        Position({place(0): -1})


@pytest.mark.parametrize(
    ("name", "ranges", "expected"),
    [
        ("nothing moves it nowhere", [], position(5, 8)),
        ("one partition moves", [span(5, 9)], position(9, 8)),
        ("an empty range leaves it", [span(5, 5)], position(5, 8)),
        ("a partition never seen is born at its start", [span(4, 6, 2)], position(5, 8, 6)),
        (
            "two ranges of a partition follow on each other",
            [span(5, 6), span(6, 9)],
            position(9, 8),
        ),
    ],
)
def test_a_position_advances_over_ranges(
    name: str, ranges: list[OffsetRange], expected: Position
) -> None:
    before = position(5, 8)
    assert before.advance(ranges) == expected, name
    assert before == position(5, 8), "the old one has not changed"


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("a gap", [span(6, 9)]),
        ("an overlap", [span(4, 9)]),
        ("behind", [span(0, 5)]),
        ("one right, one wrong", [span(5, 9), span(9, 10, 1)]),
        ("the same range twice", [span(5, 9), span(5, 9)]),
        ("a newborn partition twice", [span(0, 1, 2), span(0, 1, 2)]),
    ],
)
def test_a_position_refuses_ranges_that_do_not_start_where_it_stands(
    name: str, ranges: list[OffsetRange]
) -> None:
    with pytest.raises(ValueError, match="does not start at the position"):
        position(5, 8).advance(ranges)


@given(POSITIONS)
def test_nested_and_back_is_the_same_position(made: Position) -> None:
    assert Position.from_nested(made.as_nested()) == made
    assert position(3, 4).as_nested() == {"t": {"0": 3, "1": 4}}, "as JSON wants it"


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ((), (span(2, 9),)),
        ((span(0, 2), span(9, 12), span(3, 4, 1)), (span(2, 9),)),
        ((span(0, 4),), (span(4, 9),)),
        ((span(8, 20),), (span(2, 8),)),
        ((span(6, 7), span(3, 4)), (span(2, 3), span(4, 6), span(7, 9))),
        ((span(3, 6), span(5, 8)), (span(2, 3), span(8, 9))),
        ((span(0, 20),), ()),
    ],
)
def test_what_others_hold_is_cut_out_of_a_range(
    others: tuple[OffsetRange, ...], left: tuple[OffsetRange, ...]
) -> None:
    assert span(2, 9).without(others) == left
