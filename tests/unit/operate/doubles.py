"""A configuration with pipelines, and a broker that answers the same always."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from rivermouth.config import Config, load
from rivermouth.protocol.kafka_facts import KafkaFacts, Replicas, Retention
from rivermouth.protocol.offsets import Anchor, PartitionOffset, TopicPartition

T = TypeVar("T")
WEEK = Retention("delete", 7 * 86_400_000, None)


def configured(
    folder: Path, *, warehouse: Any = "./lake", **pipelines: str | dict[str, Any]
) -> Config:
    """Each pipeline writes ``s.NAME``. It is given by the names of its topics, or by settings that
    override others; null in its target is no setting.
    """
    text = {
        "version": 1,
        "kafka": {"bootstrap.servers": "localhost:1"},
        "warehouse": warehouse,
        "pipelines": {name: _pipeline(name, each) for name, each in pipelines.items()},
    }
    file = folder / "lake.yml"
    file.write_text(json.dumps(text), encoding="utf-8")
    return load(file)


def _pipeline(name: str, given: str | dict[str, Any]) -> dict[str, Any]:
    topics, settings = (given.split(), {}) if isinstance(given, str) else ([name], given)
    target = {"table": f"s.{name}", **settings.get("target", {})}
    return {
        "schema": "id BIGINT",
        **settings,
        "source": {"topics": topics, "format": "json", **settings.get("source", {})},
        "target": {key: value for key, value in target.items() if value is not None},
    }


@dataclass
class Answering:
    """A broker. ``failing`` are errors by the name of a question, or of a topic."""

    answer: KafkaFacts
    failing: Mapping[str, Exception] = field(default_factory=dict)
    truncated: Mapping[TopicPartition, int] = field(default_factory=dict)
    retention: Retention = WEEK
    firsts: Mapping[PartitionOffset, int | None] | None = None
    """The timestamps of first records; None: that of ``stamp_ms`` for each."""
    stamp_ms: int = 0
    at: int | None = 7
    leader: int | None = 1
    asked: list[str] = field(default_factory=list)
    """The questions that it was asked."""
    asked_facts: list[list[str]] = field(default_factory=list)
    """The topics of each question for facts."""
    wanted: list[PartitionOffset] = field(default_factory=list)
    """The first records that it was asked for."""

    def names(self) -> frozenset[str]:
        return self._answer("names", frozenset(self.answer.topics))

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        return self._answer("missing", frozenset(topics) - self.answer.topics.keys())

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        self.asked_facts.append([*topics])
        for each in self.asked_facts[-1]:
            if each in self.failing:
                raise self.failing[each]
        return self._answer("facts", self.answer)

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        return self._answer("offsets_at", dict.fromkeys(times, self.at))

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return {each: end for each, end in self.truncated.items() if each in anchors}

    def replicas(self, topic: str) -> tuple[Replicas, ...]:
        found = (Replicas(0, self.leader, (1, 2), (1,)), Replicas(1, 2, (2, 1), (2, 1)))
        return self._answer("replicas", found)

    def retentions(self, topics: Iterable[str]) -> dict[str, Retention]:
        return self._answer("retentions", dict.fromkeys(topics, self.retention))

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        self.wanted = sorted(wanted)
        same: dict[PartitionOffset, int | None] = dict.fromkeys(wanted, self.stamp_ms)
        return self._answer("firsts", same if self.firsts is None else {**self.firsts})

    def _answer(self, question: str, answer: T) -> T:
        self.asked.append(question)
        if question in self.failing:
            raise self.failing[question]
        return answer
