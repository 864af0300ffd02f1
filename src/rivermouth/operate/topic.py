"""What a topic of the configured cluster holds, and how long it keeps what was not read yet.

The tables are read first and Kafka second, as for ``status``. Each question to the broker is about
all partitions at once. What Kafka does not tell is not known, and the report says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.errors import RivermouthError, as_ours
from rivermouth.kafka.facts import AskKafka, AskTopic
from rivermouth.kafka.topics import check_topics, record_time
from rivermouth.operate.facts import (
    Answer,
    answers,
    assessed,
    connected,
    ledger_or_fault,
    newest_of,
    or_fault,
)
from rivermouth.operate.topic_report import PartitionReport, Reader, Reading, TopicReport
from rivermouth.protocol.kafka_facts import (
    NOTHING_WAITS,
    KafkaFacts,
    Outlook,
    Replicas,
    Retention,
    TimeLeft,
    behind,
    differ,
    gone,
    time_left,
    unknown,
)
from rivermouth.protocol.offsets import PartitionOffset, Position, TopicPartition, Watermarks
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import next_offsets
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.lake.offsets import ledger_of
from rivermouth.warehouse.ports import LedgerStore

_NO_RECORD = "only ends of transactions wait, and records that were aborted"


@dataclass(frozen=True)
class ReaderPosition:
    """The next offsets to read of a pipeline, in all its topics.

    ``recorded`` is the part that the ledger holds. ``reason`` says why the next run would not go
    on. Where not ``fits``, the positions are offsets of another log than the one that answers.
    """

    pipeline: Pipeline
    reason: str | None
    starts: Position = field(default_factory=Position)
    recorded: Position = field(default_factory=Position)
    fits: bool = True

    def lag(self, each: TopicPartition, watermarks: Watermarks | None) -> int | None:
        """The offsets up to the last stable one; None where nobody can tell."""
        at = self.starts.get(each)
        if at is None or watermarks is None or not self.fits:
            return None
        if at > watermarks.high and self.reason is not None:  # the log was cut
            return None
        return behind(self.starts, {each: watermarks})


@dataclass(frozen=True)
class TopicAnswers:
    """What Kafka answers for a topic; a text says why it does not.

    ``firsts`` are timestamps of first records, see ``AskTopic.first_timestamps``.
    """

    watermarks: Mapping[TopicPartition, Watermarks] | str
    retention: Retention | str
    firsts: Mapping[PartitionOffset, int | None] | str
    now_ms: float


def reader_position(
    of: Answer,
    store: LedgerStore,
    ledger: LedgerSnapshot | RivermouthError,
    kafka: AskKafka,
    now_s: float,
) -> ReaderPosition:
    """Where the next run would go on; where it would not, what the ledger holds. Never raises."""
    pipeline, answer = of.pipeline, of.facts
    if isinstance(ledger, RivermouthError):
        return ReaderPosition(pipeline, str(ledger))
    try:
        found = assessed(pipeline, store, ledger, answer, kafka, now_s)
    except Exception as fault:  # a defect of ours is one pipeline's, too
        return _of_ledger(pipeline, ledger, answer, str(as_ours(fault, pipeline.name)))
    refusal = found.halt or (answer if isinstance(answer, RivermouthError) else None)
    if refusal is not None:
        return _of_ledger(pipeline, found.ledger, answer, str(refusal))
    newest = found.ledger.newest
    recorded = newest.position if newest is not None else Position()
    # Where a run would record a loss first, it starts behind what the ledger holds.
    starts = Position({**found.starts.offsets, **recorded.offsets})
    return ReaderPosition(pipeline, None, starts, recorded)


def _of_ledger(
    pipeline: Pipeline, ledger: LedgerSnapshot, answer: KafkaFacts | RivermouthError, reason: str
) -> ReaderPosition:
    newest = ledger.newest
    if newest is None:
        return ReaderPosition(pipeline, reason)
    if isinstance(answer, RivermouthError):
        return ReaderPosition(pipeline, reason, newest.position, newest.position)
    ids = ((at, newest.topics.get(topic, "")) for topic, at in answer.topics.items())
    fits = answer.cluster == newest.cluster and not any(differ(*each) for each in ids)
    starts = Position(next_offsets(newest.position, answer, newest.assigned))
    return ReaderPosition(pipeline, reason, starts, newest.position, fits)


def next_records(
    positions: list[ReaderPosition], watermarks: Mapping[TopicPartition, Watermarks]
) -> set[PartitionOffset]:
    """The offsets at which the next records wait, without those that Kafka has deleted."""
    return {
        (each, at)
        for found in positions
        for each in watermarks
        if (at := found.starts.get(each)) is not None
        and at >= watermarks[each].low
        and found.lag(each, watermarks[each])
    }


def reader(found: ReaderPosition, partitions: list[TopicPartition], kafka: TopicAnswers) -> Reader:
    """What the report says of a pipeline, in those of the ``partitions`` that it reads."""
    has = found.pipeline.source.topics.has
    ours = [each for each in partitions if has(each.topic, each.partition)]
    readings = [_reading(found, each, kafka) for each in ours]
    return Reader(found.pipeline.name, str(found.pipeline.target.table), found.reason, readings)


def _reading(found: ReaderPosition, each: TopicPartition, kafka: TopicAnswers) -> Reading:
    position = found.starts.get(each)
    watermarks = None if isinstance(kafka.watermarks, str) else kafka.watermarks.get(each)
    lag = found.lag(each, watermarks)
    recorded = found.recorded.get(each) is not None
    left = _left(found, each, watermarks, lag, kafka)
    return Reading(each.partition, position, recorded, lag, left)


def _left(
    found: ReaderPosition,
    each: TopicPartition,
    watermarks: Watermarks | None,
    lag: int | None,
    kafka: TopicAnswers,
) -> TimeLeft:
    at = found.starts.get(each)
    if at is None or watermarks is None or lag is None:
        why = kafka.watermarks if isinstance(kafka.watermarks, str) else found.reason
        return unknown(why or "the partition was added just now")
    if at < watermarks.low:
        return gone(at, watermarks.low)
    if lag == 0:
        return NOTHING_WAITS
    if isinstance(kafka.firsts, str):
        return unknown(kafka.firsts)
    if (each, at) not in kafka.firsts:
        return unknown("no record was read there in time")
    stamp = kafka.firsts[each, at]
    if stamp is None:
        return TimeLeft(Outlook.NOTHING_WAITS, _NO_RECORD)
    if isinstance(kafka.retention, str):
        return TimeLeft(Outlook.UNKNOWN, kafka.retention, record_ms=stamp)
    return time_left(stamp, kafka.retention, kafka.now_ms)


T = TypeVar("T")

Times = Mapping[TopicPartition, int | None]
"""The first offset of each partition from the asked time on."""


def topic(
    config: Config,
    name: str,
    *,
    at: datetime | None = None,
    kafka: AskTopic | None = None,
    now: Callable[[], float] = time.time,
    secrets: Secrets = unresolved,
    stores: Callable[[Pipeline], LedgerStore] | None = None,
) -> TopicReport:
    """What the topic ``name`` holds, per partition, and where each pipeline stands that reads it.

    ``at``, with its zone: also the first offset from that time on. ``kafka`` answers (default: the
    configured broker, asked at most 5 s at a time); ``now`` is the clock, in seconds since 1970;
    ``secrets`` knows what the configuration only names; ``stores`` says where each ledger is
    (default: in the configured folder). Raises RangesRefused for a name that no topic can have, and
    for an ``at`` without a zone or before 1970; TopicMissing, and another SourceError or SetupError
    where the broker does not tell of the topic at all; ConfigError where the tables are in a
    catalog and ``stores`` is not given. A part that the broker does not tell is in
    ``TopicReport.unknown``.
    """
    check_topics([name])
    if at is not None:
        record_time(at)
    store_of = stores or partial(ledger_of, Lake.of(config, secrets))
    pipelines = [each for each in config.pipelines.values() if each.source.topics.take(name)]
    ledgers = {each.name: ledger_or_fault(store_of(each), each) for each in pipelines}
    asked = kafka or connected(config, secrets)
    replicas = asked.replicas(name)
    answered = answers(pipelines, asked, newest_of(ledgers)) if pipelines else {}
    facts = _facts(asked, name, answered)
    positions = [
        reader_position(it, store_of(it.pipeline), ledgers[it.pipeline.name], asked, now())
        for it in answered.values()
    ]
    partitions = [TopicPartition(name, each.partition) for each in replicas]
    watermarks = (
        str(facts) if isinstance(facts, RivermouthError) else _of_topic(facts.watermarks, name)
    )
    wanted = set() if isinstance(watermarks, str) else next_records(positions, watermarks)
    answer = TopicAnswers(
        watermarks,
        retention=_or_reason(lambda: asked.retentions([name])[name]),
        firsts=_or_reason(lambda: asked.first_timestamps(wanted)),
        now_ms=now() * 1000,
    )
    times = _or_reason(lambda: asked.offsets_at(dict.fromkeys(partitions, at))) if at else {}
    found = [_partition(each, facts, times, name) for each in replicas]
    readers = [reader(each, partitions, answer) for each in positions]
    return _report(TopicReport(name, found, readers, at), facts, answer, times)


def _facts(
    kafka: AskTopic, name: str, answered: Mapping[str, Answer]
) -> KafkaFacts | RivermouthError:
    """The offsets of the topic, which the answer for any pipeline has that reads all of it."""
    for each in answered.values():
        found = each.facts
        if isinstance(found, KafkaFacts) and name in found.topics and name not in found.only:
            return found
    return or_fault(lambda: kafka.facts([name]))


def _or_reason(question: Callable[[], T]) -> T | str:
    """The answer, or why there is none."""
    found = or_fault(question)
    return str(found) if isinstance(found, RivermouthError) else found


def _of_topic(numbers: Mapping[TopicPartition, T], name: str) -> dict[TopicPartition, T]:
    return {each: number for each, number in numbers.items() if each.topic == name}


def _partition(
    replicas: Replicas, facts: KafkaFacts | RivermouthError, times: Times | str, name: str
) -> PartitionReport:
    place = TopicPartition(name, replicas.partition)
    at = None if isinstance(times, str) else times.get(place)
    watermarks = None if isinstance(facts, RivermouthError) else facts.watermarks.get(place)
    if watermarks is None or isinstance(facts, RivermouthError):
        return PartitionReport(replicas, at=at)
    latest = watermarks.high + facts.held_back.get(place, 0)
    return PartitionReport(replicas, watermarks.low, watermarks.high, latest, at)


def _report(
    found: TopicReport,
    facts: KafkaFacts | RivermouthError,
    answer: TopicAnswers,
    times: Times | str,
) -> TopicReport:
    """The report with what is known of the topic as a whole, and why the rest is not."""
    parts = {
        "offsets": answer.watermarks,
        "retention": answer.retention,
        "at": times,
        "next records": answer.firsts,
    }
    unknown = {part: why for part, why in parts.items() if isinstance(why, str)}
    retention = None if isinstance(answer.retention, str) else answer.retention
    found = replace(found, retention=retention, unknown=unknown)
    if isinstance(facts, RivermouthError):
        return found
    return replace(found, cluster=facts.cluster, id=facts.topics[found.name])
