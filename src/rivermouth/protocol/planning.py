"""Decisions about offsets: where to start, and whether a micro-batch may be committed.

Pure: positions, watermarks and ids in; starting offsets, relations or a ``Halt`` out.
Nothing here touches Kafka, Spark or the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rivermouth.errors import Halt, LogTruncated, OffsetGap, OffsetOverlap, RetentionLost
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.guards import check_partition, check_source
from rivermouth.protocol.offsets import LogEnd, OffsetRange, Position, TopicPartition, Watermarks


class Relation(Enum):
    """How an offered range lies to what is recorded for its partition."""

    NEW = "starts at the position"
    PARTITION_ADDED = "a partition never seen"
    SAME = "exactly the last recorded range"
    PREFIX = "the first part of the last recorded range"
    SUFFIX = "the last part of the last recorded range"
    CONTAINS = "inside the last recorded range"
    OVERLAP = "partly recorded, partly new"
    BEHIND = "wholly before the last recorded range"
    GAP = "starts after the position"


def relate(offered: OffsetRange, last: OffsetRange | None) -> Relation:
    """Relate a range to the last recorded one of its partition (None: never seen).

    ``last`` ends at the position. Where only the position is known it is the empty range
    there, and everything below is BEHIND or OVERLAP. Terms follow ClickHouse's connector,
    seen from the offered range, with the forward GAP added.
    """
    if last is None:
        return Relation.PARTITION_ADDED
    start, until = offered.from_offset, offered.until_offset
    if start == last.until_offset:
        return Relation.NEW
    if start > last.until_offset:
        return Relation.GAP
    if until <= last.from_offset:
        return Relation.BEHIND
    if start < last.from_offset or until > last.until_offset:
        return Relation.OVERLAP
    if start == last.from_offset:
        return Relation.SAME if until == last.until_offset else Relation.PREFIX
    return Relation.SUFFIX if until == last.until_offset else Relation.CONTAINS


class Action(Enum):
    """What to do with a micro-batch."""

    PROCEED = "proceed"
    SKIP = "skip"
    HALT = "halt"


@dataclass(frozen=True)
class Decision:
    """An action, with the halt to raise where it is HALT."""

    action: Action
    halt: Halt | None = None


_FORWARD = {Relation.NEW, Relation.PARTITION_ADDED}
_RECORDED = {Relation.SAME, Relation.PREFIX, Relation.SUFFIX, Relation.CONTAINS, Relation.BEHIND}


def decide(pipeline: str, ranges: Iterable[OffsetRange], newest: Entry | None) -> Decision:
    """Decide on the ranges of a micro-batch against the newest entry.

    PROCEED where every range is NEW or PARTITION_ADDED; SKIP where the micro-batch is
    exactly what the newest entry records; HALT otherwise: inside a run, that means that
    somebody else moved the table or the topic.
    """
    offered = tuple(ranges)
    if newest is not None and newest.ranges == offered and offered:
        return Decision(Action.SKIP)
    last = _last_ranges(newest)
    for each in offered:
        relation = relate(each, last.get(each.topic_partition))
        if relation not in _FORWARD:
            return Decision(Action.HALT, _halt(pipeline, each, relation, last))
        last[each.topic_partition] = each
    return Decision(Action.PROCEED)


def _last_ranges(newest: Entry | None) -> dict[TopicPartition, OffsetRange]:
    if newest is None:
        return {}
    stands = newest.position.offsets.items()
    last = {each: OffsetRange(each, offset, offset) for each, offset in stands}
    return {**last, **{each.topic_partition: each for each in newest.ranges}}


def _halt(
    pipeline: str,
    offered: OffsetRange,
    relation: Relation,
    last: Mapping[TopicPartition, OffsetRange],
) -> Halt:
    kind = OffsetGap if relation is Relation.GAP else OffsetOverlap
    return kind(
        f"the range {offered} does not follow the ledger: {relation.value}",
        where=f"{pipeline} {offered.topic_partition}",
        expected=f"a start at {last[offered.topic_partition].until_offset}",
        found=f"a start at {offered.from_offset}",
    )


@dataclass(frozen=True)
class KafkaFacts:
    """What Kafka says before a run: cluster id, topic ids, watermarks of all partitions.

    ``held_back`` are offsets behind the last stable one: records of open transactions, and
    all that came after them, which nobody may read before these end. ``ends`` are the logs'
    ends, with the leader epochs in which they were told.
    """

    cluster: str
    topics: Mapping[str, str]
    watermarks: Mapping[TopicPartition, Watermarks]
    held_back: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, LogEnd] = field(default_factory=dict)

    @property
    def epochs(self) -> dict[TopicPartition, int]:
        """The leader epochs, where the broker tells them."""
        return {each: end.epoch for each, end in self.ends.items() if end.epoch is not None}


StartOf = Callable[[TopicPartition], int | str]
"""Where a partition without ledger starts: an offset, ``"earliest"`` or ``"latest"``."""


@dataclass(frozen=True)
class Starts:
    """The next offset to read of every partition that exists, and what is lost before it."""

    position: Position
    lost: tuple[OffsetRange, ...] = ()


def start_positions(
    pipeline: str,
    newest: Entry | None,
    kafka: KafkaFacts,
    start_of: StartOf,
    *,
    record_loss: bool = False,
) -> Starts:
    """Where to start reading, as explicit numbers.

    From the ledger where it knows the partition. A topic new to the pipeline starts where
    the configuration says; a partition added to a known topic starts at its earliest
    offset, since what came in before we noticed it must not be skipped. Where retention
    has passed the ledger's offset and ``record_loss`` is set, the start is the earliest
    one, and the range between is lost. Raises the Halt that applies.
    """
    recorded = newest.position if newest is not None else Position()
    known_topics = {each.topic for each in recorded}
    if newest is not None:
        check_source(pipeline, newest, kafka.cluster, kafka.topics)
    starts: dict[TopicPartition, int] = {}
    lost: list[OffsetRange] = []
    for each, offset in recorded.offsets.items():
        if each.topic not in kafka.topics:
            continue
        try:
            check_partition(pipeline, each, offset, kafka.watermarks.get(each))
        except RetentionLost:
            if not record_loss:
                raise
            lost.append(OffsetRange(each, offset, kafka.watermarks[each].low))
    passed = {each.topic_partition: each.until_offset for each in lost}
    for each, marks in kafka.watermarks.items():
        wanted = "earliest" if each.topic in known_topics else start_of(each)
        known = passed.get(each, recorded.get(each))
        starts[each] = known if known is not None else _resolve(pipeline, each, wanted, marks)
    return Starts(Position(starts), tuple(lost))


def births(starts: Position, newest: Entry | None) -> tuple[OffsetRange, ...]:
    """Empty ranges for the partitions that the ledger has never seen.

    They are recorded before anything is read, so that "latest" is decided once and a
    later start cannot skip what came in between.
    """
    recorded = newest.position if newest is not None else Position()
    return tuple(
        OffsetRange(each, offset, offset)
        for each, offset in starts.offsets.items()
        if recorded.get(each) is None
    )


def _resolve(pipeline: str, each: TopicPartition, wanted: int | str, marks: Watermarks) -> int:
    if wanted == "earliest":
        return marks.low
    if wanted == "latest":
        return marks.high
    offset = int(wanted)
    check_partition(pipeline, each, offset, marks)
    return offset


def batch_ranges(before: Position, after: Position) -> tuple[OffsetRange, ...]:
    """The ranges between two positions as Spark recorded them, in order.

    A partition that did not move is left out. One that is missing in ``before`` appeared
    during the run and starts at 0, even while empty: Spark refuses any other start.
    Raises LogTruncated where a partition moved backwards.
    """
    ranges: list[OffsetRange] = []
    for each, until in after.offsets.items():
        start = before.get(each)
        if start is not None and start > until:
            raise LogTruncated(
                "the log ends before what was already read",
                where=str(each),
                expected=f"an end at {start} or after",
                found=f"an end at {until}",
            )
        if start is None or start != until:
            ranges.append(OffsetRange(each, start or 0, until))
    return tuple(ranges)


def behind(position: Position, watermarks: Mapping[TopicPartition, Watermarks]) -> int:
    """How many offsets lie between position and end, over all partitions; never negative."""
    return sum(
        max(0, marks.high - max(position.get(each) or 0, marks.low))
        for each, marks in watermarks.items()
    )
