"""Where reading starts, partition by partition. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from rivermouth.config import At, OnDataLoss, OnMissingTime, Pipeline, Topics
from rivermouth.errors import LogTruncated, PartitionGone, RetentionLost, StartUnknown
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.guards import check_partition, check_source
from rivermouth.protocol.history import accepting
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks

_NAMED = 3


def vanished(pipeline: Pipeline, newest: Entry | None) -> tuple[str, ...]:
    """The topics of the ledger that match the pattern, and that it does not find any more.

    The pipeline is one whose pattern was asked for, see ``kafka.facts.with_topics``. A topic that
    is named does not vanish: where it is missing, Kafka's answer says so.
    """
    topics = pipeline.source.topics
    if not topics.pattern:
        return ()
    return tuple(each for each in sorted(topics_begun(newest) - {*topics}) if topics.take(each))


def unread(pipeline: Pipeline, newest: Entry | None) -> dict[TopicPartition, int]:
    """How many offsets of vanished topics were never read, as far as the newest entry knows."""
    gone = vanished(pipeline, newest)
    if newest is None or not gone:
        return {}
    position = newest.position.offsets
    left = {each: end - position.get(each, end) for each, end in newest.ends.offsets.items()}
    return {each: n for each, n in left.items() if n > 0 and each.topic in gone}


def check_vanished(pipeline: Pipeline, newest: Entry | None) -> None:
    """Halt where a topic vanished that was not read to its end."""
    left = unread(pipeline, newest)
    if left:
        raise PartitionGone(
            "a topic of the pattern is gone, and records of it were never read",
            where=f"{pipeline.name} {next(iter(left))}",
            expected="each topic until all of it was read",
            found="; ".join(f"{each} had {n:,} offsets more" for each, n in left.items()),
            remedy=f"If it is gone for good: {accepting(pipeline.name, 'partitions')}",
        )


def shown(topics: Sequence[str]) -> str:
    """``no longer in Kafka, read as far as the ledger knew: a, b, c and 2 more``."""
    more = f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else ""
    return f"no longer in Kafka, read as far as the ledger knew: {', '.join(topics[:_NAMED])}{more}"


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
    at, watermarks = _at(pipeline, each), kafka.watermarks[each]
    if at is None:
        return _Misfit("is not named")
    if isinstance(at, datetime):
        return _at_time(pipeline, kafka.at_times[each], at, watermarks)
    if isinstance(at, str):
        return watermarks.low if at == "earliest" else watermarks.high
    if not watermarks.low <= at <= watermarks.high:
        why = f"has the offsets from {watermarks.low} to {watermarks.high}, not {at}"
        return _Misfit(why, "earliest" if at < watermarks.low else "latest")
    return at


def _at_time(
    pipeline: Pipeline, offset: int | None, at: datetime, watermarks: Watermarks
) -> int | _Misfit:
    """``offset`` None: no record is that young. Then an empty partition has one start only."""
    may_end = (
        pipeline.source.on_missing_time is OnMissingTime.LATEST or watermarks.low == watermarks.high
    )
    if offset is None and not may_end:
        return _Misfit(f"has no record from {_text(at)} on", "latest")
    # What an open transaction holds back is read once it ends.
    return watermarks.high if offset is None else min(offset, watermarks.high)


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
        starts = start.named(topic)
        if topic not in single and not starts:
            written[topic] = _text(start.of(topic, 0) or "earliest")
            continue
        here = [each for each in sorted(kafka.watermarks) if each.topic == topic]
        if here:
            ats = {each: _at(pipeline, each) or 0 for each in here}
            starts = {e.partition: misfits[e].instead if e in misfits else ats[e] for e in here}
        inner = ", ".join(f"{number}: {_text(at)}" for number, at in starts.items())
        written[topic] = f"{{{inner}}}"
    return f"{{{', '.join(f'{topic}: {text}' for topic, text in written.items())}}}"


def _text(at: At) -> str:
    if isinstance(at, datetime):
        return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(at)


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
