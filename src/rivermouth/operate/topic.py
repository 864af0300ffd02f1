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
from rivermouth.errors import RivermouthError, SourceError, as_ours
from rivermouth.kafka.facts import AskKafka, AskTopic
from rivermouth.kafka.topics import TopicKafka, check_topics, record_time
from rivermouth.operate.facts import (
    TIMEOUT_S,
    Answer,
    Fault,
    answers,
    assessed,
    ledger_or_fault,
    newest_of,
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
from rivermouth.warehouse.folder.offsets import folder_ledger
from rivermouth.warehouse.ports import LedgerStore

_NO_RECORD = "only ends of transactions wait, and records that were aborted"


@dataclass(frozen=True)
class Standing:
    """The next offsets to read of a pipeline, in all its topics.

    ``recorded`` is the part that the ledger holds. ``reason`` says why the next run would not go
    on. Where not ``fits``, the positions are offsets of another log than the one that answers.
    """

    pipeline: Pipeline
    reason: str | None
    starts: Position = field(default_factory=Position)
    recorded: Position = field(default_factory=Position)
    fits: bool = True

    def lag(self, each: TopicPartition, marks: Watermarks | None) -> int | None:
        """The offsets up to the last stable one; None where nobody can tell."""
        at = self.starts.get(each)
        if at is None or marks is None or not self.fits:
            return None
        if at > marks.high and self.reason is not None:  # the log was cut
            return None
        return behind(self.starts, {each: marks})


@dataclass(frozen=True)
class Told:
    """What Kafka told of a topic; a text says why it did not.

    ``firsts`` are timestamps of first records, see ``AskTopic.first_timestamps``.
    """

    marks: Mapping[TopicPartition, Watermarks] | str
    retention: Retention | str
    firsts: Mapping[PartitionOffset, int | None] | str
    now_ms: float


def standing(
    asked: Answer,
    store: LedgerStore,
    ledger: LedgerSnapshot | RivermouthError,
    kafka: AskKafka,
    now_s: float,
) -> Standing:
    """Where the next run would go on; where it would not, what the ledger holds. Never raises."""
    pipeline, answer = asked.pipeline, asked.facts
    if isinstance(ledger, RivermouthError):
        return Standing(pipeline, str(ledger))
    try:
        found = assessed(pipeline, store, ledger, answer, kafka, now_s)
    except Exception as fault:  # a defect of ours is one pipeline's, too
        return _of_ledger(pipeline, ledger, answer, str(as_ours(fault, pipeline.name)))
    refusal = found.halt or (answer if isinstance(answer, Fault) else None)
    if refusal is not None:
        return _of_ledger(pipeline, found.ledger, answer, str(refusal))
    newest = found.ledger.newest
    recorded = newest.position if newest is not None else Position()
    # Where a run would record a loss first, it starts behind what the ledger holds.
    starts = Position({**found.starts.offsets, **recorded.offsets})
    return Standing(pipeline, None, starts, recorded)


def _of_ledger(
    pipeline: Pipeline, ledger: LedgerSnapshot, answer: KafkaFacts | Fault, reason: str
) -> Standing:
    newest = ledger.newest
    if newest is None:
        return Standing(pipeline, reason)
    if isinstance(answer, Fault):
        return Standing(pipeline, reason, newest.position, newest.position)
    ids = ((at, newest.topics.get(topic, "")) for topic, at in answer.topics.items())
    fits = answer.cluster == newest.cluster and not any(differ(*each) for each in ids)
    starts = Position(next_offsets(newest.position, answer, newest.assigned))
    return Standing(pipeline, reason, starts, newest.position, fits)


def next_records(
    standings: list[Standing], marks: Mapping[TopicPartition, Watermarks]
) -> set[PartitionOffset]:
    """The offsets at which the next records wait, without those that Kafka has deleted."""
    return {
        (each, at)
        for found in standings
        for each in marks
        if (at := found.starts.get(each)) is not None
        and at >= marks[each].low
        and found.lag(each, marks[each])
    }


def reader(found: Standing, partitions: list[TopicPartition], told: Told) -> Reader:
    """What the report says of a pipeline, in those of the ``partitions`` that it reads."""
    has = found.pipeline.source.topics.has
    ours = [each for each in partitions if has(each.topic, each.partition)]
    readings = [_reading(found, each, told) for each in ours]
    return Reader(found.pipeline.name, str(found.pipeline.target.table), found.reason, readings)


def _reading(found: Standing, each: TopicPartition, told: Told) -> Reading:
    position = found.starts.get(each)
    marks = None if isinstance(told.marks, str) else told.marks.get(each)
    lag = found.lag(each, marks)
    recorded = found.recorded.get(each) is not None
    left = _left(found, each, marks, lag, told)
    return Reading(each.partition, position, recorded, lag, left)


def _left(
    found: Standing, each: TopicPartition, marks: Watermarks | None, lag: int | None, told: Told
) -> TimeLeft:
    at = found.starts.get(each)
    if at is None or marks is None or lag is None:
        why = told.marks if isinstance(told.marks, str) else found.reason
        return unknown(why or "the partition was added just now")
    if at < marks.low:
        return gone(at, marks.low)
    if lag == 0:
        return NOTHING_WAITS
    if isinstance(told.firsts, str):
        return unknown(told.firsts)
    if (each, at) not in told.firsts:
        return unknown("no record was read there in time")
    stamp = told.firsts[each, at]
    if stamp is None:
        return TimeLeft(Outlook.NOTHING_WAITS, _NO_RECORD)
    if isinstance(told.retention, str):
        return TimeLeft(Outlook.UNKNOWN, told.retention, record_ms=stamp)
    return time_left(stamp, told.retention, told.now_ms)


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
    store_of = stores or partial(folder_ledger, config.folder)
    pipelines = [each for each in config.pipelines.values() if each.source.topics.take(name)]
    ledgers = {each.name: ledger_or_fault(store_of(each), each) for each in pipelines}
    asked = kafka or TopicKafka(config.kafka.revealed(secrets), TIMEOUT_S)
    replicas = asked.replicas(name)
    answered = answers(pipelines, asked, newest_of(ledgers)) if pipelines else {}
    facts = _facts(asked, name, answered)
    standings = [
        standing(it, store_of(it.pipeline), ledgers[it.pipeline.name], asked, now())
        for it in answered.values()
    ]
    partitions = [TopicPartition(name, each.partition) for each in replicas]
    marks = str(facts) if isinstance(facts, Fault) else _of_topic(facts.watermarks, name)
    wanted = set() if isinstance(marks, str) else next_records(standings, marks)
    told = Told(
        marks,
        retention=_told(lambda: asked.retentions([name])[name]),
        firsts=_told(lambda: asked.first_timestamps(wanted)),
        now_ms=now() * 1000,
    )
    times = _told(lambda: asked.offsets_at(dict.fromkeys(partitions, at))) if at else {}
    found = [_partition(each, facts, times, name) for each in replicas]
    readers = [reader(each, partitions, told) for each in standings]
    return _report(TopicReport(name, found, readers, at), facts, told, times)


def _facts(kafka: AskTopic, name: str, answered: Mapping[str, Answer]) -> KafkaFacts | Fault:
    """The offsets of the topic, which the answer for any pipeline has that reads all of it."""
    for each in answered.values():
        found = each.facts
        if isinstance(found, KafkaFacts) and name in found.topics and name not in found.only:
            return found
    try:
        return kafka.facts([name])
    except SourceError as fault:
        return fault


def _told(question: Callable[[], T]) -> T | str:
    """The answer, or why there is none."""
    try:
        return question()
    except SourceError as fault:
        return str(fault)


def _of_topic(numbers: Mapping[TopicPartition, T], name: str) -> dict[TopicPartition, T]:
    return {each: number for each, number in numbers.items() if each.topic == name}


def _partition(
    kept: Replicas, facts: KafkaFacts | Fault, times: Times | str, name: str
) -> PartitionReport:
    place = TopicPartition(name, kept.partition)
    at = None if isinstance(times, str) else times.get(place)
    marks = None if isinstance(facts, Fault) else facts.watermarks.get(place)
    if marks is None or isinstance(facts, Fault):
        return PartitionReport(kept, at=at)
    latest = marks.high + facts.held_back.get(place, 0)
    return PartitionReport(kept, marks.low, marks.high, latest, at)


def _report(
    found: TopicReport, facts: KafkaFacts | Fault, told: Told, times: Times | str
) -> TopicReport:
    """The report with what is known of the topic as a whole, and why the rest is not."""
    parts = {
        "offsets": told.marks,
        "retention": told.retention,
        "at": times,
        "next records": told.firsts,
    }
    unknown = {part: why for part, why in parts.items() if isinstance(why, str)}
    retention = None if isinstance(told.retention, str) else told.retention
    found = replace(found, retention=retention, unknown=unknown)
    if isinstance(facts, Fault):
        return found
    return replace(found, cluster=facts.cluster, id=facts.topics[found.name])
