"""Sharing a rate limit among partitions, so that none starves and none waits for another. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition


def share(backlog: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """How many offsets of each partition's ``backlog`` a batch of at most ``limit`` takes.

    In proportion to the backlogs, by largest remainders; every partition that waits gets at
    least one while the limit allows, the longest backlogs first. Empty shares are left out.
    """
    waiting = {each: size for each, size in sorted(backlog.items()) if size > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    longest = sorted(waiting, key=lambda each: -waiting[each])
    if limit <= len(waiting):
        return dict.fromkeys(sorted(longest[:limit]), 1)
    # One for each first; what is left in proportion to what is left.
    rest, left = limit - len(waiting), total - len(waiting)
    exact = {each: (size - 1) * rest for each, size in waiting.items()}
    shares = {each: 1 + product // left for each, product in exact.items()}
    by_remainder = sorted(waiting, key=lambda each: -(exact[each] % left))
    for each in by_remainder[: limit - sum(shares.values())]:
        shares[each] += 1
    return shares


def next_ranges(
    position: Position, ends: Mapping[TopicPartition, int], limit: int
) -> tuple[OffsetRange, ...]:
    """The ranges of the next batch: from ``position`` towards ``ends``, at most ``limit`` offsets.

    A partition of ``ends`` without a position is left out.
    """
    stands = position.offsets
    backlog = {each: end - stands[each] for each, end in ends.items() if each in stands}
    taken = share(backlog, limit)
    return tuple(OffsetRange(each, stands[each], stands[each] + n) for each, n in taken.items())
