"""What is asked for, judged before anything is read. Pure.

A record of a range is there, was deleted, or is not written yet: Kafka's facts tell which of the
three holds for the ends of a range. What lies between them only reading tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rivermouth.config import Config, Pipeline
from rivermouth.config.problems import closest
from rivermouth.errors import OtherCluster, RangesRefused, RetentionLost, TopicRecreated
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.offsets import OffsetRange

_NAMED = 5
"""So many ranges are named in a message."""


def configured(config: Config, pipeline: str) -> Pipeline:
    """The pipeline of that name. Raises RangesRefused."""
    found = config.pipelines.get(pipeline)
    if found is None:
        guess = closest(pipeline, config.pipelines)
        raise RangesRefused(
            f'there is no pipeline "{pipeline}"',
            where=str(config.path),
            expected=", ".join(config.pipelines),
            remedy=f'Did you mean "{guess}"?' if guess else "",
        )
    return found


def apart(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The ranges that hold an offset, in order. Raises RangesRefused where two of them overlap."""
    found = sorted(each for each in ranges if each.span)
    twice = [
        f"{one} and {other}"
        for one, other in pairwise(found)
        if one.topic_partition == other.topic_partition and other.from_offset < one.until_offset
    ]
    if twice:
        raise RangesRefused(
            "ranges overlap, so records would come twice",
            found=_listed(twice),
            remedy="Give each offset once",
        )
    return tuple(found)


def joined(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Ordered ranges, where one ends at the start of the next made one."""
    found: list[OffsetRange] = []
    for each in ranges:
        last = found[-1] if found else None
        if (
            last is not None
            and last.topic_partition == each.topic_partition
            and last.until_offset == each.from_offset
        ):
            found[-1] = OffsetRange(each.topic_partition, last.from_offset, each.until_offset)
        else:
            found.append(each)
    return tuple(found)


def one_per_partition(ranges: Iterable[OffsetRange]) -> tuple[tuple[OffsetRange, ...], ...]:
    """The ranges in as few parts as possible, each with one range of a partition at most."""
    parts: list[list[OffsetRange]] = []
    seen = Counter[object]()
    for each in ranges:
        number = seen[each.topic_partition]
        seen[each.topic_partition] += 1
        if number == len(parts):
            parts.append([])
        parts[number].append(each)
    return tuple(map(tuple, parts))


def check_written(ranges: Sequence[OffsetRange], facts: KafkaFacts) -> None:
    """Raise RangesRefused for ranges whose partition, or whose end, is not there."""
    marks = facts.watermarks
    nowhere = sorted({str(it.topic_partition) for it in ranges if it.topic_partition not in marks})
    if nowhere:
        raise RangesRefused(
            "a partition does not exist",
            expected=", ".join(f"{topic}: {_count(topic, facts)}" for topic in facts.topics),
            found=_listed(nowhere),
            remedy="Check the cluster and the number of the partition",
        )
    beyond = [each for each in ranges if each.until_offset > marks[each.topic_partition].high]
    if beyond:
        raise RangesRefused(
            "ranges end after the last record that may be read",
            expected="ends of logs that are there",
            found=_listed(_beyond(each, facts) for each in beyond),
            remedy="Read up to that end; a log that was longer was cut or created again",
        )


def check_kept(ranges: Sequence[OffsetRange], facts: KafkaFacts) -> None:
    """Raise RetentionLost for ranges that begin before the first offset that Kafka holds."""
    gone = [(each, facts.watermarks[each.topic_partition].low) for each in ranges]
    gone = [(each, low) for each, low in gone if each.from_offset < low]
    if gone:
        raise RetentionLost(
            "Kafka has deleted offsets of the ranges",
            expected="logs that start where the ranges do, or before",
            found=_listed(f"{each} in a log that starts at {low}" for each, low in gone),
            remedy="Read from that start on; rivermouth.readable says what is left",
        )


def check_same_source(cluster: str, topics: Iterable[tuple[str, str]], facts: KafkaFacts) -> None:
    """Raise OtherCluster or TopicRecreated where recorded offsets mean other records now.

    ``topics`` are names and recorded ids.
    """
    if cluster != facts.cluster:
        raise OtherCluster(
            "the ranges were recorded in another cluster",
            expected=f"cluster {cluster}",
            found=f"cluster {facts.cluster}",
            remedy="Point kafka.bootstrap.servers to that cluster",
        )
    for topic, recorded in topics:
        now = facts.topics[topic]
        if differ(recorded, now):
            raise TopicRecreated(
                f"topic {topic} was created again since the ranges were recorded",
                expected=f"topic id {recorded}",
                found=f"topic id {now}",
                remedy="Its offsets mean other records now; those of then are gone",
            )


def _beyond(each: OffsetRange, facts: KafkaFacts) -> str:
    held_back = facts.held_back.get(each.topic_partition, 0)
    open_too = f", with {held_back:,} offsets behind open transactions" if held_back else ""
    return f"{each} in a log that ends at {facts.watermarks[each.topic_partition].high}{open_too}"


def _count(topic: str, facts: KafkaFacts) -> str:
    numbers = [each.partition for each in facts.watermarks if each.topic == topic]
    return f"0 to {max(numbers)}" if numbers else "none"


def _listed(texts: Iterable[str]) -> str:
    found = [*texts]
    more = [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    return "; ".join([*found[:_NAMED], *more])
