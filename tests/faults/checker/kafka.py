"""The checker's reading of Kafka, with librdkafka: identities, bounds, and exact ranges."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
    admin,
)

from tests.faults.checker.evidence import Place

# confluent-kafka calls itself typed, but does not type or export what is needed here.
_ADMIN: Any = admin
_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}
_BATCH = 10_000
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Facts:
    """Cluster id, the ids of the topics that exist, and those that Kafka compacts."""

    cluster: str
    topics: Mapping[str, str]
    thinned: frozenset[str]


class Cluster:
    """The cluster at ``servers``. Raises KafkaException or TimeoutError where it is silent."""

    def __init__(self, servers: str) -> None:
        self._options: dict[str, str | int | float | bool] = {
            "bootstrap.servers": servers,
            "log_level": 2,
        }
        self._admin = admin.AdminClient(self._options)

    def facts(self, topics: Iterable[str]) -> Facts:
        """What the cluster says of itself and of those of ``topics`` that exist."""
        names = sorted(set(topics))
        cluster = self._admin.describe_cluster().result(_TIMEOUT_S)
        ids: dict[str, str] = {}
        for name, future in self._admin.describe_topics(TopicCollection(names)).items():
            try:
                ids[name] = str(future.result(_TIMEOUT_S).topic_id)
            except KafkaException as fault:
                if fault.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return Facts(str(cluster.cluster_id), ids, frozenset(filter(self._compacts, ids)))

    def _compacts(self, topic: str) -> bool:
        asked = _ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, topic)
        [answer] = self._admin.describe_configs([asked]).values()
        return "compact" in str(answer.result(_TIMEOUT_S)["cleanup.policy"].value)

    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """The first offset of each partition, and where a read_committed reader ends."""
        asked = [TopicPartition(*place) for place in places]
        lows = self._offsets(asked, _ADMIN.OffsetSpec.earliest())
        ends = self._offsets(asked, _ADMIN.OffsetSpec.latest())
        return {place: (low, ends[place]) for place, low in lows.items() if place in ends}

    def _offsets(self, asked: list[TopicPartition], spec: Any) -> dict[Place, int]:
        if not asked:
            return {}
        answers = self._admin.list_offsets(
            dict.fromkeys(asked, spec), isolation_level=IsolationLevel.READ_COMMITTED
        )
        found: dict[Place, int] = {}
        for each, future in answers.items():
            try:
                found[(each.topic, each.partition)] = int(future.result(_TIMEOUT_S).offset)
            except KafkaException as fault:
                if fault.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def read(
        self, ranges: Mapping[Place, tuple[int, int]], *, committed: bool
    ) -> Iterator[tuple[Place, list[Message]]]:
        """The records of each ``[start, until)``, in order within a partition."""
        left = {place: until for place, (start, until) in ranges.items() if start < until}
        if not left:
            return
        options = self._options | {
            "group.id": "checker",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
        with closing(Consumer(options)) as consumer:
            consumer.assign([TopicPartition(*place, ranges[place][0]) for place in left])
            progress = time.monotonic()
            while left:
                batches = _sorted(consumer.consume(_BATCH, 0.05), left)
                yield from ((place, each) for place, each in batches.items() if each)
                if batches:
                    progress = time.monotonic()
                elif time.monotonic() - progress > _TIMEOUT_S:
                    raise TimeoutError(f"Kafka is silent, unread: {left}")


def _sorted(messages: Iterable[Message], left: dict[Place, int]) -> dict[Place, list[Message]]:
    """Records by partition; takes out of ``left`` the partitions that are done."""
    batches: dict[Place, list[Message]] = {}
    for each in messages:
        error, offset = each.error(), each.offset() or 0
        place = (str(each.topic()), int(each.partition() or 0))
        if error is not None and error.code() in _PASSING:
            continue
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if place not in left:
            continue
        here = batches.setdefault(place, [])
        if error is not None or offset >= left[place]:
            del left[place]
        else:
            here.append(each)
    return batches
