"""Kafka's facts for several pipelines: asked once for all, one by one where that fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from rivermouth.config import Config, Pipeline, Secrets, Topics
from rivermouth.errors import SetupError, SourceError
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import AskKafka, with_topics
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Anchor, TopicPartition

TIMEOUT_S = 5.0
"""So long may a question to the broker take where an operator waits."""

Fault = SourceError | SetupError
_NOTHING = KafkaFacts("", {}, {})


@dataclass(frozen=True)
class Answer:
    """What Kafka says for a pipeline, which has the topics that its pattern matches now."""

    pipeline: Pipeline
    facts: KafkaFacts | Fault


def answers(
    pipelines: Iterable[Pipeline], kafka: AskKafka, newest: Mapping[str, Entry | None]
) -> dict[str, Answer]:
    """Kafka's answer for each pipeline, by its name. ``newest`` are their entries, read before."""
    known = [*pipelines]
    names = _names(kafka) if any(each.source.topics.pattern for each in known) else frozenset()
    matched = {each.name: _matched(each, kafka, newest.get(each.name), names) for each in known}
    whole = [each.pipeline for each in matched.values() if not isinstance(each.facts, Fault)]
    facts = _facts(whole, kafka)
    return {
        name: replace(each, facts=facts[name]) if name in facts else each
        for name, each in matched.items()
    }


def _names(kafka: AskKafka) -> frozenset[str] | Fault:
    try:
        return kafka.names()
    except (SourceError, SetupError) as fault:
        return fault


def _matched(
    pipeline: Pipeline, kafka: AskKafka, newest: Entry | None, names: frozenset[str] | Fault
) -> Answer:
    if isinstance(names, Fault):
        # A broker that is away is not asked once more for each of the others.
        away = names.code == "RM301" or bool(pipeline.source.topics.pattern)
        return Answer(pipeline, names if away else _NOTHING)
    try:
        return Answer(with_topics(kafka, pipeline, newest, names), _NOTHING)
    except (SourceError, SetupError) as fault:
        return Answer(pipeline, fault)


def _facts(pipelines: Iterable[Pipeline], kafka: AskKafka) -> dict[str, KafkaFacts | Fault]:
    wanted = {each.name: each.source.topics for each in pipelines}
    if not wanted:
        return {}
    try:
        facts = kafka.facts(sorted({topic for topics in wanted.values() for topic in topics}))
    except SetupError as fault:  # a secret that cannot be read: nobody was asked
        return dict.fromkeys(wanted, fault)
    except SourceError as fault:
        if fault.code == "RM301" or len(wanted) == 1:
            return dict.fromkeys(wanted, fault)
        return {name: _answer(kafka, topics) for name, topics in wanted.items()}
    return {name: facts.of(topics) for name, topics in wanted.items()}


def _answer(kafka: AskKafka, topics: Topics) -> KafkaFacts | SourceError:
    try:
        return kafka.facts(topics).of(topics)
    except SourceError as fault:
        return fault


class ConfiguredKafka:
    """The configured broker, connected when it is first asked."""

    def __init__(self, config: Config, secrets: Secrets) -> None:
        self._config = config
        self._secrets = secrets

    @cached_property
    def _kafka(self) -> Kafka:
        return Kafka(self._config.kafka.revealed(self._secrets), TIMEOUT_S)

    def names(self) -> frozenset[str]:
        return self._kafka.names()

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        return self._kafka.missing(topics)

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        return self._kafka.facts(topics)

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        return self._kafka.offsets_at(times)

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return self._kafka.truncated_logs(anchors)
