"""Asking Kafka what a pipeline has to know of its topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from rivermouth.config import Pipeline
from rivermouth.errors import KafkaUnsettled, TopicMissing
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry, starts_anew
from rivermouth.protocol.guards import to_ask_about
from rivermouth.protocol.kafka_facts import KafkaFacts, Replicas, Retention
from rivermouth.protocol.offsets import Anchor, PartitionOffset, TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import times, vanished


class AskKafka(Protocol):
    """What is asked of a broker, see ``client.Kafka``. Each raises a SourceError."""

    def names(self) -> frozenset[str]:
        """The names of all topics that this login may see."""

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of ``topics`` that do not exist."""

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        """Cluster id, topic ids, and watermarks of every partition of ``topics``."""

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        """The first offset of each partition from its time on."""

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        """Where the logs end that were truncated below their anchors."""


class AskTopic(AskKafka, Protocol):
    """What is asked of a broker about one topic, see ``client.Kafka``."""

    def replicas(self, topic: str) -> tuple[Replicas, ...]:
        """Leader and replicas of each partition, in order."""

    def retentions(self, topics: Iterable[str]) -> dict[str, Retention]:
        """When each topic deletes records."""

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        """The timestamp of the first record from each offset on; None: there is none."""


def with_topics(
    kafka: AskKafka,
    pipeline: Pipeline,
    newest: Entry | None,
    names: frozenset[str] | None = None,
) -> Pipeline:
    """The pipeline with the topics that its pattern matches now; without a pattern as it is.

    ``newest`` was read before Kafka is asked: so no topic of it can be one that came later.
    ``names`` are those of all topics, where they are known already. Raises SourceError, and
    KafkaUnsettled where a topic of the ledger is not among the names, and yet is there.
    """
    topics = pipeline.source.topics
    if not topics.pattern:
        return pipeline
    found = topics.among(names if names is not None else kafka.names())
    source = pipeline.source.model_copy(update={"topics": found})
    matched = pipeline.model_copy(update={"source": source})
    gone = vanished(matched, newest)
    there = {*gone} - kafka.missing(gone) if gone else set()
    if there:
        raise KafkaUnsettled(
            "the broker lists the topics without some that it has",
            where=pipeline.name,
            found=f"no {', '.join(sorted(there))}",
            remedy="It passes by itself when all brokers know all topics",
        )
    return matched


def no_topic(pipeline: Pipeline) -> TopicMissing:
    """That the pattern of a pipeline matches nothing."""
    return TopicMissing(
        f"no topic matches the pattern {pipeline.source.topics.pattern}",
        where=pipeline.name,
        expected="a topic whose whole name matches, and that does not begin with __",
        found="none",
        remedy="Correct source.topics, or create a topic; it is never created for you",
    )


def facts_of(kafka: AskKafka, pipeline: Pipeline) -> KafkaFacts:
    """Kafka's facts about the topics of a pipeline. Raises SourceError.

    A topic of a pattern that went since its name was told passes by itself: it is not asked for
    again.
    """
    topics = pipeline.source.topics
    try:
        return kafka.facts(topics).of(topics)
    except TopicMissing as fault:
        if not topics.pattern:
            raise
        raise KafkaUnsettled(fault.what, where=fault.where, found=fault.found) from fault


def assess_by(
    kafka: AskKafka, facts: KafkaFacts, ledger: LedgerSnapshot, pipeline: Pipeline, now_s: float
) -> Assessment:
    """What a run would do, see ``assess``, with Kafka asked for starts and truncated logs.

    The latter come last: where a guard halts anyway, it is not asked. Raises SourceError, also
    where no topic matches a pattern.
    """
    facts = with_times(kafka, facts, pipeline, ledger.newest)
    found = assess(ledger, facts, pipeline, now_s)
    if found.halt is not None:
        return found
    if not pipeline.source.topics:
        raise no_topic(pipeline)
    asked = with_truncations(kafka, facts, ledger.newest)
    return found if asked is facts else assess(ledger, asked, pipeline, now_s)


def with_truncations(kafka: AskKafka, facts: KafkaFacts, newest: Entry | None) -> KafkaFacts:
    """The facts with the logs that were truncated: asked only where a leader epoch has changed."""
    truncated = kafka.truncated_logs(to_ask_about(newest, facts.epochs))
    return replace(facts, truncated=truncated) if truncated else facts


def with_times(
    kafka: AskKafka, facts: KafkaFacts, pipeline: Pipeline, newest: Entry | None = None
) -> KafkaFacts:
    """The facts with the offsets of the times at which new topics start, if any does."""
    wanted = times(pipeline, [each for each in facts.watermarks if starts_anew(each, newest)])
    return replace(facts, at_times=kafka.offsets_at(wanted)) if wanted else facts
