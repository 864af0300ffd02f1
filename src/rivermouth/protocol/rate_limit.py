"""Rate limits: how far a batch goes, and how it is shared so that no partition starves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition

Ends = Mapping[TopicPartition, int]
"""Where a partition is read to, exclusive."""


@dataclass(frozen=True)
class Pace:
    """When a batch is due, and how far it may go.

    ``at_least`` offsets must wait, or ``delay_s`` have passed. ``per_second`` is the most offsets
    of one partition in a second; None: as many as there are. ``every_s`` is the time from one look
    at the topics to the next one.
    """

    at_least: int
    delay_s: float
    per_second: int | None
    every_s: float

    def due(self, waiting: int, waited_s: float) -> bool:
        """Whether to read ``waiting`` offsets, so many seconds after the last batch was due."""
        return waiting >= self.at_least or waited_s >= self.delay_s

    def within(self, position: Position, ends: Ends, waited_s: float) -> Ends:
        """The ``ends`` as far as the rate allows, so many seconds after the last batch was due.

        A partition gets the offsets of ``every_s`` seconds at least.
        """
        if self.per_second is None:
            return ends
        most = int(self.per_second * max(self.every_s, waited_s))
        return {each: min(end, (position.get(each) or 0) + most) for each, end in ends.items()}


def lag(position: Position, ends: Ends) -> int:
    """How many offsets wait between ``position`` and ``ends``."""
    return sum(_backlog(position, ends).values())


def waiting_after(ranges: Iterable[OffsetRange], ends: Ends) -> int:
    """How many offsets wait between the ends of the ranges and those of their partitions."""
    return sum(max(0, ends.get(each.topic_partition, 0) - each.until_offset) for each in ranges)


def share(
    backlog: Mapping[TopicPartition, int], limit: int, turn: int
) -> Mapping[TopicPartition, int]:
    """How many offsets of each partition's ``backlog`` a batch of at most ``limit`` takes.

    In proportion to the backlogs, by largest remainders; every partition that waits gets at least
    one. Where more wait than ``limit``, they take turns, one offset each: first the one whose
    number is ``turn``, in the order of all partitions, counted round and round. Empty shares are
    left out.
    """
    waiting = {each: size for each, size in sorted(backlog.items()) if size > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    if limit <= len(waiting):
        order = sorted(backlog)
        first = turn % len(order)
        queue = [each for each in (*order[first:], *order[:first]) if each in waiting]
        return dict.fromkeys(sorted(queue[:limit]), 1)
    # One for each first; what is left in proportion to what is left.
    rest, left = limit - len(waiting), total - len(waiting)
    exact = {each: (size - 1) * rest for each, size in waiting.items()}
    shares = {each: 1 + product // left for each, product in exact.items()}
    by_remainder = sorted(waiting, key=lambda each: -(exact[each] % left))
    for each in by_remainder[: limit - sum(shares.values())]:
        shares[each] += 1
    return shares


def next_ranges(position: Position, ends: Ends, limit: int) -> tuple[OffsetRange, ...]:
    """The ranges of the next batch: from ``position`` towards ``ends``, at most ``limit`` offsets.

    A partition of ``ends`` without a position is left out. Where the limit is too small for all
    that wait, the turn is the sum of the position. It rises by the limit with each such batch, so
    each partition has its turn after at most (partitions / limit) batches, rounded up, and a
    restart goes on where the turns were.
    """
    stands = position.offsets
    backlog = _backlog(position, ends)
    taken = share(backlog, limit, sum(stands.values()))
    return tuple(OffsetRange(each, stands[each], stands[each] + n) for each, n in taken.items())


def _backlog(position: Position, ends: Ends) -> dict[TopicPartition, int]:
    stands = position.offsets
    return {each: max(end - stands[each], 0) for each, end in ends.items() if each in stands}
