"""Where partitions start that the ledger does not know: from the configuration to numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from rivermouth.config import At, OnMissingTime, Pipeline
from rivermouth.errors import StartUnknown
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import TopicPartition, Watermarks


def times(
    pipeline: Pipeline, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, datetime]:
    """The partitions that the configuration lets start at a time."""
    start = pipeline.source.start
    wanted = {each: start.of(each.topic, each.partition) for each in partitions}
    return {each: at for each, at in wanted.items() if isinstance(at, datetime)}


def first_offsets(
    pipeline: Pipeline, kafka: KafkaFacts, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The first offset to read of each of ``partitions``, all of new topics.

    Raises StartUnknown, which lists every partition for which the configuration gives none.
    """
    found: dict[TopicPartition, int] = {}
    problems: dict[TopicPartition, str] = {}
    for each in sorted(partitions):
        at = _offset(pipeline, kafka, each)
        if isinstance(at, int):
            found[each] = at
        else:
            problems[each] = at
    topics = {each.topic for each in (*found, *problems)}
    problems |= dict.fromkeys(_not_there(pipeline, kafka, topics), "does not exist")
    if problems:
        raise _unknown(pipeline, kafka, problems)
    return found


def _offset(pipeline: Pipeline, kafka: KafkaFacts, each: TopicPartition) -> int | str:
    """The offset, or what stands against it."""
    at, marks = pipeline.source.start.of(each.topic, each.partition), kafka.watermarks[each]
    if at is None:
        return "is not named"
    if isinstance(at, datetime):
        return _at_time(pipeline, kafka.at_times.get(each), at, marks)
    if isinstance(at, str):
        return marks.low if at == "earliest" else marks.high
    if not marks.low <= at <= marks.high:
        return f"has the offsets from {marks.low} to {marks.high}, not {at}"
    return at


def _at_time(pipeline: Pipeline, offset: int | None, at: datetime, marks: Watermarks) -> int | str:
    if offset is None and pipeline.source.on_missing_time is OnMissingTime.ERROR:
        return f"has no record from {_text(at)} on"
    # What an open transaction holds back is read once it ends.
    return marks.high if offset is None else min(offset, marks.high)


def _not_there(
    pipeline: Pipeline, kafka: KafkaFacts, topics: Iterable[str]
) -> list[TopicPartition]:
    named = (
        TopicPartition(topic, number)
        for topic in topics
        for number in pipeline.source.start.named(topic)
    )
    return [each for each in named if each not in kafka.watermarks]


def _unknown(
    pipeline: Pipeline, kafka: KafkaFacts, problems: Mapping[TopicPartition, str]
) -> StartUnknown:
    return StartUnknown(
        "source.start does not fit the partitions",
        where=pipeline.name,
        expected="an offset that exists for each partition",
        found="; ".join(f"{each} {why}" for each, why in sorted(problems.items())),
        remedy=f"Write start: {_to_write(pipeline, kafka, problems)}",
    )


def _to_write(pipeline: Pipeline, kafka: KafkaFacts, problems: Mapping[TopicPartition, str]) -> str:
    """The topics with problems as they can be written: ``earliest`` where there is a problem."""
    start, topics = pipeline.source.start, {each.topic for each in problems}
    written: dict[str, list[str]] = {topic: [] for topic in sorted(topics)}
    for each in sorted(kafka.watermarks):
        if each.topic in topics:
            at = start.of(each.topic, each.partition)
            said = "earliest" if each in problems or at is None else _text(at)
            written[each.topic].append(f"{each.partition}: {said}")
    inner = ", ".join(f"{topic}: {{{', '.join(all_of)}}}" for topic, all_of in written.items())
    return f"{{{inner}}}"


def _text(at: At) -> str:
    if isinstance(at, datetime):
        return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(at)
