"""Kafka's facts for several pipelines: asked once for all, one by one where that fails."""

from __future__ import annotations

from collections.abc import Iterable

from rivermouth.config import Pipeline
from rivermouth.errors import SetupError, SourceError
from rivermouth.kafka.facts import AskKafka
from rivermouth.protocol.kafka_facts import KafkaFacts

Fault = SourceError | SetupError


def answers(pipelines: Iterable[Pipeline], kafka: AskKafka) -> dict[str, KafkaFacts | Fault]:
    """Kafka's answer for each pipeline, by its name."""
    wanted = {each.name: each.source.topics for each in pipelines}
    try:
        facts = kafka.facts(sorted({topic for topics in wanted.values() for topic in topics}))
    except SetupError as fault:  # a secret that cannot be read: nobody was asked
        return dict.fromkeys(wanted, fault)
    except SourceError as fault:
        if fault.code == "RM301" or len(wanted) == 1:
            return dict.fromkeys(wanted, fault)
        return {name: _answer(kafka, topics) for name, topics in wanted.items()}
    return {name: _part(facts, topics) for name, topics in wanted.items()}


def _answer(kafka: AskKafka, topics: Iterable[str]) -> KafkaFacts | SourceError:
    try:
        return kafka.facts(topics)
    except SourceError as fault:
        return fault


def _part(facts: KafkaFacts, topics: Iterable[str]) -> KafkaFacts:
    ours = {topic: facts.topics[topic] for topic in topics}
    return KafkaFacts(
        cluster=facts.cluster,
        topics=ours,
        watermarks={each: it for each, it in facts.watermarks.items() if each.topic in ours},
        held_back={each: it for each, it in facts.held_back.items() if each.topic in ours},
        ends={each: it for each, it in facts.ends.items() if each.topic in ours},
    )
