"""Asking Kafka what a pipeline has to know of its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from rivermouth.config import Pipeline
from rivermouth.errors import TopicMissing
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.first_offsets import times
from rivermouth.protocol.guards import to_ask_about
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Anchor, TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot


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
