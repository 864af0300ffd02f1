"""A rate limit shared among partitions, and the pace of a source."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

import pytest

from rivermouth.protocol.batches import Ends, Pace, lag, next_ranges, share, waiting_after
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from tests.builders import place, position, span

pytestmark = pytest.mark.unit

A, B, C = (TopicPartition("t", number) for number in range(3))
Backlog = Mapping[TopicPartition, int]

CASES = {
    "all that waits, where the limit allows": ({A: 5, B: 7}, 12, 0, {A: 5, B: 7}),
    "in proportion to what waits": ({A: 100, B: 300}, 40, 0, {A: 10, B: 30}),
    "the remainder to the largest remainder": ({A: 10, B: 10, C: 10}, 10, 2, {A: 4, B: 3, C: 3}),
    "one each before any proportion": ({A: 1, B: 1_000_000}, 10, 0, {A: 1, B: 9}),
    "in turn, where not all can have one": ({A: 1, B: 9, C: 5}, 2, 0, {A: 1, B: 1}),
    "in turn, from that on whose turn it is": ({A: 1, B: 9, C: 5}, 2, 5, {A: 1, C: 1}),
    "in turn, without what is empty": ({A: 1, B: 0, C: 5}, 1, 1, {C: 1}),
    "one each, where the limit is their number": ({A: 1, B: 9, C: 5}, 3, 1, {A: 1, B: 1, C: 1}),
    "nothing of what is empty": ({A: 0, B: 3}, 10, 0, {B: 3}),
    "nothing of nothing": ({}, 10, 0, {}),
}


@pytest.mark.parametrize(("backlog", "limit", "turn", "shares"), CASES.values(), ids=CASES)
def test_each_partition_gets(
    backlog: Backlog, limit: int, turn: int, shares: dict[TopicPartition, int]
) -> None:
    assert share(backlog, limit, turn) == shares


LEAST = {
    "at least so many of each that has them": (
        {A: 4, B: 900, C: 2_000},
        1_000,
        {A: 4, B: 336, C: 660},
    ),
    "in turn, where not all can have so many": ({A: 700, B: 2, C: 800}, 150, {A: 100, B: 2, C: 48}),
    "one alone, where the limit is below it": ({A: 700, B: 90, C: 800}, 70, {A: 70}),
}


@pytest.mark.parametrize(("backlog", "limit", "shares"), LEAST.values(), ids=LEAST)
def test_with_a_least_each_partition_gets(
    backlog: Backlog, limit: int, shares: dict[TopicPartition, int]
) -> None:
    assert share(backlog, limit, 0, 100) == shares


def drawn(cases: int) -> Iterator[tuple[random.Random, Backlog, int]]:
    """Backlogs of up to eight partitions, small and large ones together, each with a limit."""
    dice = random.Random(2026)
    for _ in range(cases):
        sizes = [dice.choice((0, 1, 2, 30, 5_000)) for _ in range(dice.randint(0, 8))]
        backlog = {place(n): dice.randint(0, size) for n, size in enumerate(sizes)}
        yield dice, backlog, dice.choice((dice.randint(1, 9), dice.randint(1, 12_000)))


@pytest.mark.short(("cases",), {(10_000,)})
@pytest.mark.parametrize("cases", [10_000, 100_000])
def test_the_limit_is_used_up_in_proportion_and_no_partition_is_left_out(cases: int) -> None:
    for dice, backlog, limit in drawn(cases):
        turn = dice.randint(0, 99)
        shares = share(backlog, limit, turn)
        given = (backlog, limit, turn, shares)
        waiting = {each: size for each, size in backlog.items() if size}
        total, beside = sum(waiting.values()), len(waiting)
        assert sum(shares.values()) == min(limit, total), given
        assert all(0 < size <= waiting[each] for each, size in shares.items()), given
        assert len(shares) == min(beside, limit), given
        again = {each: backlog[each] for each in sorted(backlog, reverse=True)}
        assert share(again, limit, turn) == shares, given
        if beside < limit < total:
            rest = (limit - beside) / (total - beside)
            for each, size in shares.items():
                assert abs(size - 1 - (waiting[each] - 1) * rest) < 1 + 1e-9, given


@pytest.mark.short(("cases",), {(500,)})
@pytest.mark.parametrize("cases", [500, 5_000])
def test_each_partition_has_its_turn_however_many_others_wait(cases: int) -> None:
    """Whatever is produced meanwhile; only the position is known from one batch to the next."""
    for dice, backlog, _ in drawn(cases):
        if not backlog:
            continue
        stands, ends = Position(dict.fromkeys(backlog, 0)), {**backlog}
        least = dice.choice((1, 1, 3, 40))
        limit, since = dice.randint(1, len(backlog) * least), dict.fromkeys(backlog, 0)
        for _ in range(20):
            waiting = {each for each in ends if ends[each] > stands.offsets[each]}
            ranges = next_ranges(stands, ends, limit, least)
            stands = stands.advance(ranges)
            served = {each.topic_partition for each in ranges}
            since = {each: since[each] + 1 if each in waiting - served else 0 for each in ends}
            turns = math.ceil(len(ends) * min(least, limit) / limit)
            assert max(since.values()) < turns, (ends, limit, least, since)
            for each in ends:
                ends[each] += dice.choice((0, 0, 1, 900))


def test_one_partition_of_ten_million_does_not_hold_up_nine_small_ones() -> None:
    large, small = place(0), [place(n) for n in range(1, 10)]
    ends = {large: 10_000_000, **dict.fromkeys(small, 1_000)}
    stands = Position(dict.fromkeys(ends, 0))
    batches = []
    while ranges := next_ranges(stands, ends, 50_000):
        batches.append({each.topic_partition: each.span for each in ranges})
        stands = stands.advance(ranges)
    assert batches[0] == {large: 49_946, **dict.fromkeys(small, 6)}
    assert [sum(each.values()) for each in batches] == [50_000] * 200 + [9_000]
    for each in small:
        shares = [batch.get(each, 0) for batch in batches]
        ended = len(shares) - shares[::-1].index(next(filter(None, reversed(shares))))
        assert ended in (199, 200), "in proportion: small and large ones end together"
        assert all(1 <= size <= 6 for size in shares[:ended]), "none starves while it waits"
        assert sum(shares) == 1_000


def test_ranges_start_at_the_position_and_partitions_without_one_wait() -> None:
    ranges = next_ranges(Position({A: 10, B: 20}), {A: 12, B: 20, C: 5}, 100)
    assert ranges == (OffsetRange(A, 10, 12),)


def test_a_log_that_ends_before_the_position_gives_nothing() -> None:
    assert next_ranges(Position({A: 10}), {A: 4}, 100) == ()


def test_the_turn_is_that_of_the_position() -> None:
    ends = {A: 99, B: 99, C: 99}
    assert next_ranges(position(0, 0, 0), ends, 1) == (span(0, 1, 0),)
    assert next_ranges(position(1, 0, 0), ends, 1) == (span(0, 1, 1),)
    assert next_ranges(position(1, 1, 0), ends, 1) == (span(0, 1, 2),)
    assert next_ranges(position(1, 1, 1), ends, 1) == (span(1, 2, 0),)


def test_what_waits_is_counted_where_there_is_a_position() -> None:
    assert lag(Position({A: 10, B: 20}), {A: 12, B: 4, C: 5}) == 2


@pytest.mark.parametrize(
    ("ends", "waiting"), [({A: 15, B: 7}, 6), ({A: 12, B: 9, C: 99}, 5), ({A: 3}, 0), ({}, 0)]
)
def test_what_waits_behind_ranges_is_that_of_their_partitions(ends: Ends, waiting: int) -> None:
    assert waiting_after((OffsetRange(A, 10, 12), OffsetRange(B, 0, 4)), ends) == waiting


PACE = Pace(at_least=100, delay_s=60, per_second=5, every_s=10)


@pytest.mark.parametrize(
    ("waiting", "waited_s", "due"),
    [(99, 59.9, False), (100, 0, True), (0, 60, True), (0, math.inf, True)],
)
def test_a_batch_is_due_once_enough_waits_or_the_delay_has_passed(
    waiting: int, waited_s: float, due: bool
) -> None:
    assert PACE.due(waiting, waited_s) is due


@pytest.mark.parametrize(
    ("waited_s", "expected"),
    [
        pytest.param(0, {A: 57, B: 20}, id="the offsets of a trigger at least"),
        pytest.param(20.5, {A: 109, B: 20}, id="those of the time that has passed"),
        pytest.param(1000, {A: 1_000, B: 20}, id="no more than there are"),
    ],
)
def test_the_rate_of_each_partition_is_that_of_the_time(
    waited_s: float, expected: dict[TopicPartition, int]
) -> None:
    assert PACE.within(position(7, 15), {A: 1_000, B: 20}, waited_s) == expected
