"""What a topic of the configured cluster holds, and how long it keeps what was not read yet.

The tables are read first and Kafka second, as for ``status``. Each question to the broker is about
all partitions at once. What Kafka does not tell is not known, and the report says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.errors import SourceError
from rivermouth.kafka.asked import check_topics, record_time
from rivermouth.kafka.facts import AskTopic
from rivermouth.kafka.topics import TopicKafka
from rivermouth.operate.looking import ledger_or_fault, newest_of
from rivermouth.operate.topic_facts import TIMEOUT_S, Answer, Fault, answers
from rivermouth.operate.topic_readers import Told, next_records, reader, standing
from rivermouth.operate.topic_report import PartitionReport, TopicReport
from rivermouth.protocol.kafka_facts import KafkaFacts, Replicas
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.warehouse.folder.ledger import folder_ledger
from rivermouth.warehouse.ports import LedgerStore

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
