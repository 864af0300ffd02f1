"""Where reading starts, partition by partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rivermouth.config import OnDataLoss, Pipeline
from rivermouth.errors import LogTruncated, RetentionLost
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.first_offsets import check_assigned, first_offsets
from rivermouth.protocol.guards import check_partition, check_source
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.protocol.vanished import check_vanished


@dataclass(frozen=True)
class Starts:
    """The next offset to read of every partition that exists, and what is lost before it."""

    position: Position
    lost: tuple[OffsetRange, ...] = ()


def start_positions(pipeline: Pipeline, newest: Entry | None, kafka: KafkaFacts) -> Starts:
    """Where to start reading, as explicit numbers.

    From the ledger where it knows the partition. A topic new to the pipeline starts where
    the configuration says, and so does a partition that comes to be assigned. A topic that came to
    match a pattern starts at its first record, and a partition added to a known topic at offset 0,
    since nothing that came in before we noticed it may be skipped. Where Kafka has deleted records
    after that offset and the configuration says to record a loss, the start is the earliest
    offset, and the range between is lost. Raises the Halt that applies.
    """
    name, source = pipeline.name, pipeline.source
    recorded = newest.position if newest is not None else Position()
    if newest is not None:
        check_source(name, newest, kafka.cluster, kafka.topics)
        check_vanished(pipeline, newest)
    due = next_offsets(recorded, kafka, newest.assigned if newest is not None else frozenset())
    lost: list[OffsetRange] = []
    for each, offset in due.items():
        try:
            check_partition(name, each, offset, kafka.watermarks.get(each))
        except RetentionLost:
            if source.on_data_loss is not OnDataLoss.RECORD:
                raise
            lost.append(OffsetRange(each, offset, kafka.watermarks[each].low))
    check_assigned(pipeline, kafka)
    passed = {each.topic_partition: each.until_offset for each in lost}
    known = {each: passed.get(each, at) for each, at in due.items() if each in kafka.watermarks}
    came = _came_later(pipeline, recorded, kafka)
    new = [each for each in kafka.watermarks if each not in known and each not in came]
    first = first_offsets(pipeline, kafka, new, {each.topic for each in came})
    starts = {**came, **known, **first}
    return Starts(Position(starts), tuple(lost))


def _came_later(
    pipeline: Pipeline, recorded: Position, kafka: KafkaFacts
) -> dict[TopicPartition, int]:
    """The first record of each topic that has come to match the pattern since the first run.

    ``start`` is of those that were there then, or that it names.
    """
    source, known = pipeline.source, {each.topic for each in recorded}
    if not source.topics.pattern or not known:
        return {}
    named = {*known, *source.start.offsets}
    return {each: at.low for each, at in kafka.watermarks.items() if each.topic not in named}


def next_offsets(
    recorded: Position, kafka: KafkaFacts, assigned: frozenset[str] = frozenset()
) -> dict[TopicPartition, int]:
    """The next offset to read of each partition of a known topic that Kafka was asked for.

    A partition that the ledger does not know was added since: it was empty then, so it is due
    from offset 0. Not so with topics that were ``assigned``: it may be one that was not read.
    """
    known_topics = {each.topic for each in recorded} - assigned
    added = {each: 0 for each in kafka.watermarks if each.topic in known_topics}
    asked = {each: at for each, at in recorded.offsets.items() if kafka.tell_of(each)}
    return {**added, **asked}


def discovered(starts: Starts, newest: Entry | None) -> tuple[OffsetRange, ...]:
    """Empty ranges for newly discovered partitions: those that the ledger has never seen.

    They are recorded before anything is read, so that "latest" is decided once and a
    later start cannot skip what came in between. What is lost is recorded by its own range.
    """
    recorded = newest.position if newest is not None else Position()
    lost = {each.topic_partition for each in starts.lost}
    return tuple(
        OffsetRange(each, offset, offset)
        for each, offset in starts.position.offsets.items()
        if recorded.get(each) is None and each not in lost
    )


def ranges_between(before: Position, after: Position) -> tuple[OffsetRange, ...]:
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
