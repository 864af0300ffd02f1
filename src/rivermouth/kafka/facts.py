"""Asking Kafka what a pipeline has to know of its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from rivermouth.protocol.entry import Entry
from rivermouth.protocol.guards import to_ask_about
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Anchor, TopicPartition


class AskKafka(Protocol):
    """What is asked of a broker, see ``client.Kafka``. Both raise a SourceError."""

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        """Cluster id, topic ids, and watermarks of every partition of ``topics``."""

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        """Where the logs end that were truncated below their anchors."""


def ask_kafka(kafka: AskKafka, topics: Iterable[str], newest: Entry | None) -> KafkaFacts:
    """The facts about ``topics``, and which logs were truncated below the newest entry's position.

    Raises SourceError.
    """
    return with_truncations(kafka, kafka.facts(topics), newest)


def with_truncations(kafka: AskKafka, facts: KafkaFacts, newest: Entry | None) -> KafkaFacts:
    """The facts with the logs that were truncated: asked only where a leader epoch has changed."""
    truncated = kafka.truncated_logs(to_ask_about(newest, facts.epochs))
    return replace(facts, truncated=truncated) if truncated else facts
