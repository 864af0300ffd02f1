"""Where partitions start that the ledger does not know: from the configuration to numbers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from rivermouth.config import At, OnMissingTime, Pipeline, Topics
from rivermouth.errors import StartUnknown
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import TopicPartition, Watermarks


def times(
    pipeline: Pipeline, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, datetime]:
    """The partitions that the configuration lets start at a time."""
    start = pipeline.source.start
    wanted = {each: start.of(each.topic, each.partition) for each in partitions}
    return {each: at for each, at in wanted.items() if isinstance(at, datetime)}


def start_is_over(pipeline: Pipeline, newest: Entry | None) -> bool:
    """Whether ``start`` is written in the file, and no topic starts by it any more.

    Of topics by a pattern only those that ``start`` names can still start by it: the others start
    at their first record once the ledger has begun. Of assigned partitions each one can.
    """
    source, begun = pipeline.source, topics_begun(newest)
    if not begun or "start" not in source.model_fields_set:
        return False
    if newest is not None and source.topics.assigned:
        return all(newest.position.get(each) is not None for each in _assigned(source.topics))
    listed = () if source.topics.pattern else source.topics
    return {*source.start.offsets, *listed} <= begun


OVER = "start in the file has no effect any more: the ledger says where to go on"


@dataclass(frozen=True)
class _Misfit:
    """Why a partition cannot start as configured, and what can be written instead."""

    why: str
    instead: At = "earliest"


def first_offsets(
    pipeline: Pipeline,
    kafka: KafkaFacts,
    partitions: Iterable[TopicPartition],
    came: Collection[str] = (),
) -> dict[TopicPartition, int]:
    """The first offset to read of each of ``partitions``, where ``start`` decides it.

    Raises StartUnknown, which lists every partition for which the configuration gives none, and
    says what to write. It does not name the topics that ``came`` since the first run: those start
    at their first record as long as ``start`` does not name them.
    """
    wanted = {each: _offset(pipeline, kafka, each) for each in sorted(partitions)}
    misfits = {each: at for each, at in wanted.items() if isinstance(at, _Misfit)}
    gone = _not_there(pipeline, kafka, {each.topic for each in wanted})
    if misfits or gone:
        why = {**{each: at.why for each, at in misfits.items()}, **gone}
        only_times = all(isinstance(_at(pipeline, each), datetime) for each in misfits)
        or_latest = ", or on_missing_time: latest" if only_times and not gone else ""
        raise StartUnknown(
            "source.start does not fit the partitions",
            where=pipeline.name,
            expected="an offset that exists for each partition",
            found="; ".join(f"{each} {text}" for each, text in sorted(why.items())),
            remedy=f"Write start: {_to_write(pipeline, kafka, misfits, gone, came)}{or_latest}",
        )
    return {each: at for each, at in wanted.items() if isinstance(at, int)}


def check_assigned(pipeline: Pipeline, kafka: KafkaFacts) -> None:
    """Raise StartUnknown, which lists all assigned partitions that do not exist."""
    topics = pipeline.source.topics
    missing = [each for each in _assigned(topics) if each not in kafka.watermarks]
    if not missing:
        return
    there = {topic: _numbers_of(topic, kafka.watermarks) for topic in topics}
    to_write = ", ".join(f"{topic}: {each}" for topic, each in there.items() if each)
    start = pipeline.source.start
    named = any(each.partition in start.named(each.topic) for each in missing)
    named = named or any(topic in start.offsets for topic, each in there.items() if not each)
    # A start that names what is not read is refused.
    and_start = ", and leave them out of start" if named else ""
    raise StartUnknown(
        "source.topics assigns partitions that do not exist",
        where=pipeline.name,
        expected="partitions that Kafka has",
        found=f"no {', '.join(map(str, missing))}",
        remedy=(
            f"Write assign: {{{to_write}}}{and_start}"
            if to_write
            else "Assign partitions that exist"
        ),
    )


def _numbers_of(topic: str, places: Iterable[TopicPartition]) -> list[int]:
    return sorted(each.partition for each in places if each.topic == topic)


def _assigned(topics: Topics) -> Iterable[TopicPartition]:
    return (
        TopicPartition(name, each) for name in topics.assigned for each in topics.assigned[name]
    )


def _at(pipeline: Pipeline, each: TopicPartition) -> At | None:
    return pipeline.source.start.of(each.topic, each.partition)


def _offset(pipeline: Pipeline, kafka: KafkaFacts, each: TopicPartition) -> int | _Misfit:
    at, marks = _at(pipeline, each), kafka.watermarks[each]
    if at is None:
        return _Misfit("is not named")
    if isinstance(at, datetime):
        return _at_time(pipeline, kafka.at_times[each], at, marks)
    if isinstance(at, str):
        return marks.low if at == "earliest" else marks.high
    if not marks.low <= at <= marks.high:
        why = f"has the offsets from {marks.low} to {marks.high}, not {at}"
        return _Misfit(why, "earliest" if at < marks.low else "latest")
    return at


def _at_time(
    pipeline: Pipeline, offset: int | None, at: datetime, marks: Watermarks
) -> int | _Misfit:
    """``offset`` None: no record is that young. Then an empty partition has one start only."""
    may_end = pipeline.source.on_missing_time is OnMissingTime.LATEST or marks.low == marks.high
    if offset is None and not may_end:
        return _Misfit(f"has no record from {_text(at)} on", "latest")
    # What an open transaction holds back is read once it ends.
    return marks.high if offset is None else min(offset, marks.high)


def _not_there(
    pipeline: Pipeline, kafka: KafkaFacts, topics: Iterable[str]
) -> dict[TopicPartition, str]:
    named = (
        TopicPartition(topic, number)
        for topic in topics
        for number in pipeline.source.start.named(topic)
    )
    return {each: "does not exist" for each in named if each not in kafka.watermarks}


def _to_write(
    pipeline: Pipeline,
    kafka: KafkaFacts,
    misfits: Mapping[TopicPartition, _Misfit],
    gone: Iterable[TopicPartition],
    came: Collection[str],
) -> str:
    """The whole setting: by partition where something does not fit, else as it is."""
    start, single = pipeline.source.start, {each.topic for each in (*misfits, *gone)}
    written: dict[str, str] = {}
    # One that only start names is of a pattern, and not there yet: what is said of it stays.
    topics = dict.fromkeys((*pipeline.source.topics, *start.offsets))
    for topic in (each for each in topics if each not in came):
        said = start.named(topic)
        if topic not in single and not said:
            written[topic] = _text(start.of(topic, 0) or "earliest")
            continue
        here = [each for each in sorted(kafka.watermarks) if each.topic == topic]
        if here:
            ats = {each: _at(pipeline, each) or 0 for each in here}
            said = {e.partition: misfits[e].instead if e in misfits else ats[e] for e in here}
        inner = ", ".join(f"{number}: {_text(at)}" for number, at in said.items())
        written[topic] = f"{{{inner}}}"
    return f"{{{', '.join(f'{topic}: {text}' for topic, text in written.items())}}}"


def _text(at: At) -> str:
    if isinstance(at, datetime):
        return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(at)
