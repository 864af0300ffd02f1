"""What Kafka says of the topics of a pipeline, as a value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rivermouth.config import Topics
from rivermouth.protocol.offsets import LogEnd, Position, TopicPartition, Watermarks

_NO_ID = {"", "AAAAAAAAAAAAAAAAAAAAAA"}
"""What stands for "no topic id": the zero UUID of brokers that do not tell ids (before 2.8)."""


def is_told(topic_id: str) -> bool:
    """Whether this is the id of a topic, and not the zero id that brokers give without one."""
    return topic_id not in _NO_ID


def differ(one: str, other: str) -> bool:
    """Whether two ids, where both are told, are those of two topics."""
    return one != other and is_told(one) and is_told(other)


@dataclass(frozen=True)
class Replicas:
    """Where a partition is kept, by the ids of the brokers; ``leader`` None: it has none now."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True)
class KafkaFacts:
    """What Kafka says before a run: cluster id, topic ids, watermarks of all partitions.

    A topic id may be the zero id, see ``is_told``: then nobody can tell whether the topic was
    deleted and created again.
    ``held_back`` are offsets behind the last stable one: records of open transactions, and
    all that came after them, which nobody may read before these end. ``ends`` are the end
    offsets, with the leader epochs in which they were told. ``truncated`` are the ends of logs
    that were truncated below the position, see ``guards.check_not_truncated``. ``at_times`` are
    the offsets of the first records at the times at which the configuration lets partitions start,
    or later; None: there is no such record. ``only`` are the partitions that were asked for of
    topics of which not all were, whether or not they exist.
    """

    cluster: str
    topics: Mapping[str, str]
    watermarks: Mapping[TopicPartition, Watermarks]
    held_back: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, LogEnd] = field(default_factory=dict)
    truncated: Mapping[TopicPartition, int] = field(default_factory=dict)
    at_times: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    only: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def tell_of(self, each: TopicPartition) -> bool:
        """Whether Kafka was asked for a partition; then it exists if it has watermarks."""
        asked = self.only.get(each.topic)
        return each.topic in self.topics and (asked is None or each.partition in asked)

    def of(self, topics: Topics) -> KafkaFacts:
        """The part of the facts that a source of these ``topics`` is concerned with."""
        ids = {topic: self.topics[topic] for topic in topics}
        only = {topic: frozenset(numbers) for topic, numbers in topics.assigned.items()}
        part = replace(self, topics=ids, only=only)
        return replace(
            part,
            watermarks={each: it for each, it in self.watermarks.items() if part.tell_of(each)},
            held_back={each: it for each, it in self.held_back.items() if part.tell_of(each)},
            ends={each: it for each, it in self.ends.items() if part.tell_of(each)},
        )

    @property
    def epochs(self) -> dict[TopicPartition, int]:
        """The leader epochs, where the broker tells them."""
        return {each: end.epoch for each, end in self.ends.items() if end.epoch is not None}


def behind(position: Position, watermarks: Mapping[TopicPartition, Watermarks]) -> int:
    """How many offsets lie between position and end, over all partitions; never negative."""
    return sum(
        max(0, marks.high - max(position.get(each) or 0, marks.low))
        for each, marks in watermarks.items()
    )
