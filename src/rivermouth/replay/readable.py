"""What Kafka still holds of given ranges: counted by reading, never guessed from the offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.kafka.topics import check_topics
from rivermouth.operate.facts import connected
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.replay.ranges import (
    RecordedRanges,
    check_kept,
    check_same_source,
    check_written,
    disjoint,
    one_per_partition,
)
from rivermouth.verification.kafka.client import KafkaSource, Source, client_options

Given = OffsetRange | RecordedRanges
"""A range, or those of a ledger entry, of which cluster and topics are known."""


def flat(given: Iterable[Given]) -> tuple[OffsetRange, ...]:
    """The ranges, in the order given."""
    return tuple(
        one
        for each in given
        for one in (each.ranges if isinstance(each, RecordedRanges) else (each,))
    )


def checked(
    config: Config, given: Iterable[Given], secrets: Secrets, *, begins_too: bool = True
) -> tuple[OffsetRange, ...]:
    """The ranges that hold an offset, in order, if they can be read.

    Where not ``begins_too``, their beginnings may be deleted. Kafka is not asked where no range
    holds an offset. Raises what ``read`` raises.
    """
    given = tuple(given)
    ranges = disjoint(flat(given))
    if not ranges:
        return ()
    topics = {each.topic for each in ranges}
    check_topics(sorted(topics))
    facts = connected(config, secrets).facts(sorted(topics))
    for each in given:
        if isinstance(each, RecordedRanges) and any(one.span for one in each.ranges):
            ids = {one.topic: each.topics[one.topic] for one in each.ranges if one.span}
            check_same_source(each.cluster, ids.items(), facts)
    check_written(ranges, facts)
    if begins_too:
        check_kept(ranges, facts)
    return ranges


@dataclass(frozen=True)
class ReadableRange:
    """What a ``read_committed`` reader sees of ``range`` now.

    ``records`` is how many records there are, ``first`` and ``last`` their first and last offset,
    None where there is none. ``deleted`` is the part before the first offset that Kafka holds: its
    records are gone for certain; None where that is no part of the range. In the rest an offset
    without a record had none that may be read (a transaction marker, an aborted record), or
    compaction took it: Kafka does not tell which.
    """

    range: OffsetRange
    records: int = 0
    first: int | None = None
    last: int | None = None
    deleted: OffsetRange | None = None


def readable(
    config: Config, ranges: Iterable[Given], *, secrets: Secrets = unresolved
) -> tuple[ReadableRange, ...]:
    """What is left of each range, in the order given. Reads all of their records, without Spark.

    A range may begin before the first offset that Kafka holds; then the answer says what is
    deleted. All else is as for ``rivermouth.read``, which says what is raised. What retention
    deletes during the reading is in ``deleted``, even if it was counted.
    """
    given = tuple(ranges)
    wanted = checked(config, given, secrets, begins_too=False)
    source = KafkaSource(client_options(config, secrets)) if wanted else None
    found = counted(source, wanted) if source is not None else {}
    return tuple(found.get(each, ReadableRange(each)) for each in flat(given))


def counted(source: Source, ranges: tuple[OffsetRange, ...]) -> dict[OffsetRange, ReadableRange]:
    """What ``source`` shows of ranges that hold an offset, do not overlap, and have an end."""
    found: dict[OffsetRange, ReadableRange] = {}
    for part in one_per_partition(ranges):
        found |= _part(source, part)
    return found


def _part(source: Source, ranges: tuple[OffsetRange, ...]) -> dict[OffsetRange, ReadableRange]:
    """The same of ranges of different partitions."""
    by_partition = {(each.topic, each.partition): each for each in ranges}
    found = {each: ReadableRange(each) for each in ranges}
    low = source.first_offsets(by_partition)
    left = {
        partition: (
            min(max(each.from_offset, low[partition]), each.until_offset),
            each.until_offset,
        )
        for partition, each in by_partition.items()
    }
    for partition, messages in source.read(left):
        offsets = [each.offset() or 0 for each in messages]
        if offsets:
            it = by_partition[partition]
            seen = found[it]
            found[it] = replace(
                seen,
                records=seen.records + len(offsets),
                first=offsets[0] if seen.first is None else seen.first,
                last=offsets[-1],
            )
    # Asked again: what was deleted during the reading may be missing in the count.
    low = source.first_offsets(by_partition)
    return {
        each: replace(seen, deleted=_deleted(each, low[each.topic, each.partition]))
        for each, seen in found.items()
    }


def _deleted(each: OffsetRange, low: int) -> OffsetRange | None:
    until = min(low, each.until_offset)
    if until <= each.from_offset:
        return None
    return OffsetRange(each.topic_partition, each.from_offset, until)
