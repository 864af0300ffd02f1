"""What Kafka says of the topics of a pipeline, and how long it keeps records. Pure.

Kafka deletes a whole segment of a log once the newest record in it is older than ``retention.ms``.
The newest record of a segment is not older than any other record in it. So age takes a record at
the earliest when the record itself is older than ``retention.ms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

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
        max(0, found.high - max(position.get(each) or 0, found.low))
        for each, found in watermarks.items()
    )


_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


@dataclass(frozen=True)
class Retention:
    """When a topic deletes records.

    ``policy`` is ``cleanup.policy``, ``age_ms`` is ``retention.ms``, ``size`` is
    ``retention.bytes``, which counts for each partition; None: no limit.
    """

    policy: str
    age_ms: int | None
    size: int | None

    @property
    def deletes(self) -> bool:
        """Whether age and size delete records; else only compaction removes some."""
        return "delete" in self.policy.split(",")

    @property
    def kept_for(self) -> str | None:
        """How long the topic keeps a record; None: no record is deleted because of its age."""
        if self.age_ms is None or not self.deletes:
            return None
        return in_words(self.age_ms)


def in_words(duration_ms: int) -> str:
    """A duration as people say it, exact: ``7 days``, ``1 day 12 hours``."""
    words, left = [], duration_ms
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    if left or not words:
        words.append(f"{left} ms")
    return " ".join(words)


class Outlook(Enum):
    """What may happen to the next record that a pipeline must read."""

    NOTHING_WAITS = "nothing waits"
    KEPT = "kept"
    """Neither age nor size deletes it."""
    BY_AGE = "by age"
    """Age may delete it, not before ``TimeLeft.seconds`` are over."""
    BY_AGE_OR_SIZE = "by age or size"
    """The same, and the size of the partition may delete it at any time."""
    BY_SIZE = "by size"
    """The size of the partition may delete it at any time."""
    GONE = "gone"
    """Kafka has deleted it before it was read."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TimeLeft:
    """How long Kafka keeps the next record that a pipeline must read, as an estimate.

    ``seconds``: age takes it in so many seconds at the earliest; 0: it may go at any time; None:
    there is no number. ``basis`` says in words what the estimate rests on, or why there is none.
    ``record_ms`` is the timestamp of that record, in ms since 1970; None: it is not known.
    """

    outlook: Outlook
    basis: str
    seconds: float | None = None
    record_ms: int | None = None


NOTHING_WAITS = TimeLeft(Outlook.NOTHING_WAITS, "no record waits")


def unknown(why: str) -> TimeLeft:
    """That the estimate cannot be made, and why."""
    return TimeLeft(Outlook.UNKNOWN, why)


def gone(position: int, earliest: int) -> TimeLeft:
    """That Kafka deleted the offsets from ``position`` on, up to ``earliest``, before a read."""
    return TimeLeft(Outlook.GONE, f"Kafka deleted the offsets {position:,} to {earliest - 1:,}")


def time_left(record_ms: int, retention: Retention, now_ms: float) -> TimeLeft:
    """The estimate for a record with the timestamp ``record_ms``; all times in ms since 1970.

    A negative timestamp: the record has none.
    """
    size = f"retention.bytes {retention.size:,}" if retention.size is not None else ""
    stamp = record_ms if record_ms >= 0 else None
    if not retention.deletes:
        basis = f"cleanup.policy {retention.policy} does not delete by age or size"
        return TimeLeft(Outlook.KEPT, basis, record_ms=stamp)
    if retention.age_ms is None and not size:
        basis = "retention.ms -1 and retention.bytes -1: no limit"
        return TimeLeft(Outlook.KEPT, basis, record_ms=stamp)
    if retention.age_ms is None:
        basis = f"{size} deletes by size, retention.ms -1 not by age"
        return TimeLeft(Outlook.BY_SIZE, basis, record_ms=stamp)
    if stamp is None:
        return unknown("the record has no timestamp")
    seconds = max(0.0, round((stamp + retention.age_ms - now_ms) / 1000, 3))
    basis = f"the record's timestamp plus retention.ms {retention.age_ms:,}"
    basis += "; Kafka deletes whole segments, so not before"
    if size:
        basis += f"; {size} may delete it sooner"
    if "compact" in retention.policy:
        basis += "; compaction may remove an older record of a key sooner"
    outlook = Outlook.BY_AGE_OR_SIZE if size else Outlook.BY_AGE
    return TimeLeft(outlook, basis, seconds, stamp)
