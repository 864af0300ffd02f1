"""Batches: how far each one goes, and how its ranges lie to the ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rivermouth.errors import Halt, OffsetGap, OffsetOverlap
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition


@dataclass(frozen=True)
class Batch:
    """Which offsets a batch covers, and under which number and id it is committed.

    ``pipeline`` is its name in the ledger, ``sequence`` the number of its entry there. ``commit``
    is the id of this attempt: an attempt that meets a conflict is made again under another id, with
    the same sequence and ranges. ``ranges`` are in order; some may be empty.
    """

    pipeline: str
    sequence: int
    commit: str
    ranges: tuple[OffsetRange, ...]

    @staticmethod
    def of(plan: CommitPlan) -> Batch:
        """The batch of a planned commit."""
        draft = plan.draft
        return Batch(draft.pipeline, draft.sequence, plan.commit, draft.ranges)

    def range_of(self, topic: str, partition: int) -> OffsetRange | None:
        """The range of one partition; None where the batch has none."""
        place = TopicPartition(topic, partition)
        return next((each for each in self.ranges if each.topic_partition == place), None)


def misplaced(pipeline: str, ranges: Iterable[OffsetRange], newest: Entry | None) -> Halt | None:
    """The halt where a range of a micro-batch does not start at the position; None: all do.

    Inside a run, that means that somebody else moved the table or the topic. A partition that was
    never seen starts anywhere.
    """
    last = _last_ranges(newest)
    for each in sorted(ranges):
        before = last.get(each.topic_partition)
        if before is not None and each.from_offset != before.until_offset:
            return _halt(pipeline, each, before)
        last[each.topic_partition] = each
    return None


def relation(offered: OffsetRange, last: OffsetRange) -> str:
    """How a range lies to the last recorded one of its partition, where it does not follow it.

    ``last`` ends at the position. Where only the position is known, it is the empty range there.
    """
    start, until = offered.from_offset, offered.until_offset
    if start > last.until_offset:
        return "starts after the position"
    if until <= last.from_offset:
        return "wholly before the last recorded range"
    if start < last.from_offset or until > last.until_offset:
        return "partly recorded, partly new"
    if start == last.from_offset:
        whole = until == last.until_offset
        return f"{'exactly' if whole else 'the first part of'} the last recorded range"
    ends = until == last.until_offset
    return f"{'the last part of' if ends else 'inside'} the last recorded range"


def _last_ranges(newest: Entry | None) -> dict[TopicPartition, OffsetRange]:
    if newest is None:
        return {}
    position = newest.position.offsets.items()
    last = {each: OffsetRange(each, offset, offset) for each, offset in position}
    return {**last, **{each.topic_partition: each for each in newest.ranges}}


def _halt(pipeline: str, offered: OffsetRange, last: OffsetRange) -> Halt:
    kind = OffsetGap if offered.from_offset > last.until_offset else OffsetOverlap
    return kind(
        f"the range {offered} does not follow the ledger: {relation(offered, last)}",
        where=f"{pipeline} {offered.topic_partition}",
        expected=f"a start at {last.until_offset}",
        found=f"a start at {offered.from_offset}",
    )


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
    backlog: Mapping[TopicPartition, int], limit: int, turn: int, least: int = 1
) -> Mapping[TopicPartition, int]:
    """How many offsets of each partition's ``backlog`` a batch of at most ``limit`` takes.

    Every partition that waits gets ``least`` offsets, or all that wait there; what is left goes to
    them in proportion to what is left of the backlogs, by largest remainders. Where the limit is
    too small for that, they take turns, with so many offsets each: first the one at the place
    ``turn`` / ``least`` in the order of all partitions, counted round and round. Empty shares are
    left out.
    """
    waiting = {each: size for each, size in sorted(backlog.items()) if size > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    least = min(least, limit)
    shares = {each: min(size, least) for each, size in waiting.items()}
    rest = limit - sum(shares.values())
    if rest < 0:
        return _in_turn(shares, sorted(backlog), turn // least, limit)
    left = total - sum(shares.values())
    exact = {each: (size - shares[each]) * rest for each, size in waiting.items()}
    by_remainder = sorted(waiting, key=lambda each: -(exact[each] % left))
    shares = {each: size + exact[each] // left for each, size in shares.items()}
    for each in by_remainder[: limit - sum(shares.values())]:
        shares[each] += 1
    return shares


def _in_turn(
    shares: Mapping[TopicPartition, int], order: Sequence[TopicPartition], first: int, limit: int
) -> Mapping[TopicPartition, int]:
    """The shares of the partitions in ``order``, from ``first`` on, until the limit is reached."""
    first %= len(order)
    taken: dict[TopicPartition, int] = {}
    for each in (*order[first:], *order[:first]):
        size = min(shares.get(each, 0), limit)
        if size:
            taken[each], limit = size, limit - size
    return dict(sorted(taken.items()))


def next_ranges(
    position: Position, ends: Ends, limit: int, least: int = 1
) -> tuple[OffsetRange, ...]:
    """The ranges of the next batch: from ``position`` towards ``ends``, at most ``limit`` offsets.

    A partition of ``ends`` without a position is left out. Where the limit is too small for
    ``least`` offsets of all that wait, the turn is the sum of the position. It rises by the limit
    with each such batch, so each partition has its turn after at most (partitions x ``least`` /
    limit) batches, rounded up, and a restart goes on where the turns were.
    """
    known = position.offsets
    backlog = _backlog(position, ends)
    taken = share(backlog, limit, sum(known.values()), least)
    return tuple(OffsetRange(each, known[each], known[each] + n) for each, n in taken.items())


def _backlog(position: Position, ends: Ends) -> dict[TopicPartition, int]:
    known = position.offsets
    return {each: max(end - known[each], 0) for each, end in ends.items() if each in known}
