"""A rate limit shared among partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.protocol.rate_limit import next_ranges, share

pytestmark = pytest.mark.unit

A, B, C = (TopicPartition("t", number) for number in range(3))

CASES = {
    "all that waits, where the limit allows": ({A: 5, B: 7}, 12, {A: 5, B: 7}),
    "in proportion to what waits": ({A: 100, B: 300}, 40, {A: 10, B: 30}),
    "the remainder to the largest remainder": ({A: 10, B: 10, C: 10}, 10, {A: 4, B: 3, C: 3}),
    "one each before any proportion": ({A: 1, B: 1_000_000}, 10, {A: 1, B: 9}),
    "the longest first, where not all can have one": ({A: 1, B: 9, C: 5}, 2, {B: 1, C: 1}),
    "nothing of what is empty": ({A: 0, B: 3}, 10, {B: 3}),
    "nothing of nothing": ({}, 10, {}),
}


@pytest.mark.parametrize(("backlog", "limit", "shares"), CASES.values(), ids=CASES)
def test_each_partition_gets(
    backlog: dict[TopicPartition, int], limit: int, shares: dict[TopicPartition, int]
) -> None:
    assert share(backlog, limit) == shares


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.just("t"), st.integers(0, 50)), st.integers(0, 10_000)
    ),
    st.integers(1, 5_000),
)
def test_the_limit_is_used_up_and_nobody_gets_more_than_waits(
    backlog: dict[TopicPartition, int], limit: int
) -> None:
    shares = share(backlog, limit)
    assert sum(shares.values()) == min(limit, sum(backlog.values()))
    assert all(0 < size <= backlog[each] for each, size in shares.items())
    waiting = [each for each, size in backlog.items() if size]
    assert len(shares) == min(len(waiting), limit), "none starves"


def test_ranges_start_at_the_position_and_partitions_without_one_wait() -> None:
    ranges = next_ranges(Position({A: 10, B: 20}), {A: 12, B: 20, C: 5}, 100)
    assert ranges == (OffsetRange(A, 10, 12),)


def test_a_log_that_ends_before_the_position_gives_nothing() -> None:
    assert next_ranges(Position({A: 10}), {A: 4}, 100) == ()
