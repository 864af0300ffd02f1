"""Asking Kafka what a pipeline has to know of its topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from rivermouth.config import Pipeline
from rivermouth.errors import TopicMissing
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.first_offsets import times
from rivermouth.protocol.guards import to_ask_about
from rivermouth.protocol.kafka_facts import KafkaFacts, Replicas
from rivermouth.protocol.offsets import Anchor, PartitionOffset, TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.topic_retention import Retention


class AskKafka(Protocol):
    """What is asked of a broker, see ``client.Kafka``. Each raises a SourceError."""

    def names(self) -> frozenset[str]:
        """The names of all topics that this login may see."""

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        """Cluster id, topic ids, and watermarks of every partition of ``topics``."""

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        """The first offset of each partition from its time on."""

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        """Where the logs end that were truncated below their anchors."""


class AskTopic(AskKafka, Protocol):
    """What is asked of a broker about one topic, see ``topics.TopicKafka``."""

    def replicas(self, topic: str) -> tuple[Replicas, ...]:
        """Leader and replicas of each partition, in order."""

    def retentions(self, topics: Iterable[str]) -> dict[str, Retention]:
        """When each topic deletes records."""

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        """The timestamp of the first record from each offset on; None: there is none."""


def with_topics(kafka: AskKafka, pipeline: Pipeline) -> Pipeline:
    """The pipeline with the topics that its pattern matches now; without a pattern as it is.

    Raises TopicMissing where it matches none, and SourceError.
    """
    topics = pipeline.source.topics
    if not topics.pattern:
        return pipeline
    found = topics.among(kafka.names())
    if not found:
        raise TopicMissing(
            f"no topic matches the pattern {topics.pattern}",
            where=pipeline.name,
            expected="a topic whose whole name matches, and that does not begin with __",
            found="none",
            remedy="Correct source.topics, or create a topic; it is never created for you",
        )
    source = pipeline.source.model_copy(update={"topics": found})
    return pipeline.model_copy(update={"source": source})


def assess_by(
    kafka: AskKafka, facts: KafkaFacts, ledger: LedgerSnapshot, pipeline: Pipeline, now_s: float
) -> Assessment:
    """What a run would do, see ``assess``, with Kafka asked for starts and truncated logs.

    The latter come last: where a guard halts anyway, it is not asked. Raises SourceError.
    """
    facts = with_times(kafka, facts, pipeline, ledger.newest)
    found = assess(ledger, facts, pipeline, now_s)
    if found.halt is not None:
        return found
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
    known = topics_begun(newest)
    wanted = times(pipeline, [each for each in facts.watermarks if each.topic not in known])
    return replace(facts, at_times=kafka.offsets_at(wanted)) if wanted else facts
