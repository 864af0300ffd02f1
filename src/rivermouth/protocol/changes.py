"""What an operator accepted as changed: settings, partitions, logs, topics, the cluster. Pure.

An entry that accepts changes is the one that follows on the newest entry and yet moves the
position in another way than by reading. It says what was changed, and where each partition stood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rivermouth.protocol.offsets import Position, TopicPartition


class Change(Enum):
    """A kind of change; the value is the word of ``resume --accept``."""

    IDENTITY = "identity"
    """A setting that gives the pipeline its identity has another value."""
    PARTITIONS = "partitions"
    """Recorded partitions are gone."""
    TRUNCATION = "truncation"
    """Logs were cut below the position; they hold other records from there on."""
    TOPIC = "topic"
    """Topics were deleted and created again."""
    CLUSTER = "cluster"
    """Another cluster answers: all topics are others."""


NEVER_ACCEPTED = {
    "table": "the rows are in another table",
    "mode": "the rows that are there were made by another rule",
    "keys": "the rows that are there have other keys",
    "metrics": "the totals that are there were measured in another way",
    "order_by": "another order decided which rows are there",
}
"""Settings of which a change cannot be accepted, with the reason."""


def accepted_changes(words: str) -> frozenset[Change]:
    """The kinds that ``words`` name, with commas; none where it names anything else."""
    named = {each.strip() for each in words.split(",")}
    known = {each.value: each for each in Change}
    return frozenset(known[each] for each in named) if named <= known.keys() else frozenset()


@dataclass(frozen=True)
class Move:
    """Where the position of a partition goes; None: it was not known, or it is gone.

    Earlier ranges of the partition mean other records than Kafka holds now: those from ``now`` on
    where its log was cut, else all of them.
    """

    topic_partition: TopicPartition
    was: int | None
    now: int | None


@dataclass(frozen=True)
class Changes:
    """The changes that one entry accepts, and what was recorded before.

    ``settings`` are the earlier values of settings, ``cluster`` is the id of the earlier cluster
    (empty: it is the same), ``topics`` the earlier ids of topics. A partition that is not in
    ``moved`` holds the same records at the same offsets.
    """

    kinds: tuple[Change, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[Move, ...] = ()

    def __post_init__(self) -> None:
        of_topics = bool({Change.TOPIC, Change.CLUSTER} & {*self.kinds})
        fits = (
            bool(self.kinds)
            and bool(self.settings) == (Change.IDENTITY in self.kinds)
            and bool(self.cluster) == (Change.CLUSTER in self.kinds)
            and (of_topics or not self.topics)
        )
        if not fits:
            raise ValueError(f"changes that do not fit their kinds: {self}")

    @property
    def of_source(self) -> bool:
        """Whether Kafka's part has changed, and not settings alone."""
        return bool({*self.kinds} - {Change.IDENTITY})

    def renews(self, topic: str) -> bool:
        """Whether the topic is another one than before."""
        return bool(self.cluster) or topic in self.topics

    def applied(self, position: Position) -> Position:
        """The position after the changes. Raises ValueError where they do not allow a move."""
        moved = dict(position.offsets)
        for each in self.moved:
            place = each.topic_partition
            if moved.pop(place, None) != each.was:
                raise ValueError(f"{place} stood at {position.get(place)}, not at {each.was}")
            if not self._allows(each):
                raise ValueError(f"{place} may not move from {each.was} to {each.now}")
            if each.now is not None:
                moved[place] = each.now
        return Position(moved)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of an entry; what is empty is left out."""
        told: dict[str, Any] = {
            "settings": dict(self.settings),
            "cluster": self.cluster,
            "topics": dict(self.topics),
            "moved": [
                [each.topic_partition.topic, each.topic_partition.partition, each.was, each.now]
                for each in self.moved
            ],
        }
        kinds = [each.value for each in self.kinds]
        return {"kinds": kinds, **{name: value for name, value in told.items() if value}}

    @staticmethod
    def from_dict(told: Mapping[str, Any]) -> Changes:
        """The inverse of ``as_dict``. Raises LookupError, TypeError or ValueError."""
        return Changes(
            kinds=tuple(Change(each) for each in told["kinds"]),
            settings=dict(told.get("settings", {})),
            cluster=str(told.get("cluster", "")),
            topics=dict(told.get("topics", {})),
            moved=tuple(
                Move(TopicPartition(topic, partition), was, now)
                for topic, partition, was, now in told.get("moved", ())
            ),
        )

    def _allows(self, move: Move) -> bool:
        if move.now is None:
            return Change.PARTITIONS in self.kinds and move.was is not None
        if self.renews(move.topic_partition.topic):
            return True
        cut = move.was is not None and move.now < move.was
        return cut and Change.TRUNCATION in self.kinds
