"""How the ranges of a micro-batch lie to the ledger, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from rivermouth.errors import Halt, OffsetGap, OffsetOverlap
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import OffsetRange, TopicPartition


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


def decide(pipeline: str, ranges: Iterable[OffsetRange], newest: Entry | None) -> Decision:
    """Decide on the ranges of a micro-batch against the newest entry.

    PROCEED where every range is NEW or PARTITION_ADDED; SKIP where the micro-batch is
    exactly what the newest entry records; HALT otherwise: inside a run, that means that
    somebody else moved the table or the topic.
    """
    offered = tuple(sorted(ranges))
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
