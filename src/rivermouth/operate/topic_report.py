"""What a topic holds, and where each pipeline stands that reads it, as values with their JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from rivermouth.protocol.kafka_facts import Outlook, Replicas, Retention, TimeLeft


@dataclass(frozen=True)
class PartitionReport:
    """One partition: where it is kept, and its offsets; None: not known.

    ``earliest`` is the first offset that Kafka keeps, ``latest`` the next one to be written (the
    high watermark). Records from ``last_stable`` on are behind an open transaction: nobody may
    read them before it ends. ``at`` is the first offset from the asked time on; None also where no
    record is that young, and where no time was asked for.
    """

    kept: Replicas
    earliest: int | None = None
    last_stable: int | None = None
    latest: int | None = None
    at: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "partition": self.kept.partition,
            "leader": self.kept.leader,
            "replicas": [*self.kept.replicas],
            "in_sync": [*self.kept.in_sync],
            "earliest": self.earliest,
            "last_stable": self.last_stable,
            "latest": self.latest,
            "at": self.at,
        }


@dataclass(frozen=True)
class Reading:
    """Where a pipeline stands in one partition.

    ``position`` is the next offset to read. Where it is not ``recorded``, no entry of the ledger
    names it: the next run would start there. ``lag`` are the offsets up to the last stable one, an
    upper bound of the records. ``left`` is how long Kafka keeps the next record.
    """

    partition: int
    position: int | None
    recorded: bool
    lag: int | None
    left: TimeLeft

    def as_dict(self) -> dict[str, Any]:
        return {
            "partition": self.partition,
            "position": self.position,
            "recorded": self.recorded,
            "lag": self.lag,
            "next_record_at": _time(self.left.record_ms),
            "time_left": {
                "outlook": self.left.outlook.value,
                "seconds": self.left.seconds,
                "basis": self.left.basis,
            },
        }


@dataclass(frozen=True)
class Reader:
    """A pipeline that reads the topic. ``reason`` says why the next run would not go on."""

    name: str
    table: str
    reason: str | None
    partitions: Sequence[Reading]

    @property
    def lag(self) -> int | None:
        """The lag in all partitions; None where that of one is not known."""
        return _sum([each.lag for each in self.partitions])

    @property
    def seconds_left(self) -> float | None:
        """The shortest time left of all partitions, 0 where a record is gone already.

        None: of no partition age takes what waits, as far as that is known; see each partition.
        """
        seconds = (
            0.0 if each.left.outlook is Outlook.GONE else each.left.seconds
            for each in self.partitions
        )
        return min((each for each in seconds if each is not None), default=None)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "table": self.table,
            "reason": self.reason,
            "lag": self.lag,
            "seconds_left": self.seconds_left,
            "partitions": [each.as_dict() for each in self.partitions],
        }


@dataclass(frozen=True)
class TopicReport:
    """A topic of the configured cluster.

    ``cluster`` and ``id`` are None where the offsets are not known. ``at`` is the time that was
    asked for. ``unknown`` says of each part that Kafka did not tell (``offsets``, ``retention``,
    ``at``, ``next records``) why.
    """

    name: str
    partitions: Sequence[PartitionReport]
    readers: Sequence[Reader]
    at: datetime | None = None
    cluster: str | None = None
    id: str | None = None
    retention: Retention | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def records_at_most(self) -> int | None:
        """The offsets that Kafka keeps: compaction and transactions leave some without a record."""
        return _sum([_span(each.earliest, each.latest) for each in self.partitions])

    @property
    def held_back(self) -> int | None:
        """The offsets behind open transactions."""
        return _sum([_span(each.last_stable, each.latest) for each in self.partitions])

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth topic --json``."""
        return {
            "topic": self.name,
            "cluster": self.cluster,
            "id": self.id,
            "retention": _retention(self.retention),
            "at": _time(self.at.timestamp() * 1000 if self.at is not None else None),
            "sums": {
                "partitions": len(self.partitions),
                "records_at_most": self.records_at_most,
                "held_back": self.held_back,
                "lag": {each.name: each.lag for each in self.readers},
            },
            "partitions": [each.as_dict() for each in self.partitions],
            "pipelines": [each.as_dict() for each in self.readers],
            "unknown": dict(self.unknown),
        }


def _span(start: int | None, until: int | None) -> int | None:
    return None if start is None or until is None else until - start


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if len(known) == len(numbers) else None


def _time(ms: float | None) -> str | None:
    """None also where no calendar has the time: Kafka keeps what a producer writes."""
    if ms is None:
        return None
    try:
        at = datetime.fromtimestamp(ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _retention(found: Retention | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "cleanup.policy": found.policy,
        "retention.ms": found.age_ms,
        "retention.bytes": found.size,
    }
