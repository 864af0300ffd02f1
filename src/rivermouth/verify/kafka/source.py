"""The checker's own reading of Kafka: identities, watermarks, and exact ranges of records.

Read with ``read_committed`` and explicit offsets; no group is joined and nothing is
committed. An offset without a visible record (transaction marker, aborted record, hole
left by compaction) is passed over, also at the end of a range.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
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

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.errors import KafkaRefused, KafkaUnreachable, SourceError
from rivermouth.kafka.options import client_of
from rivermouth.verify.ledger.entry import Place, shown

# confluent-kafka calls itself typed, but does not type or export what is needed here.
_ADMIN: Any = admin
_AWAY = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
}
_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}
_BATCH = 10_000
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """Cluster id; topic ids of the topics that exist; those that Kafka compacts."""

    cluster: str
    topics: Mapping[str, str]
    compacted: frozenset[str]


def client_options(config: Config, secrets: Secrets = unresolved) -> dict[str, str]:
    """The Kafka options of a configuration, secrets revealed for the moment of use."""
    return {**config.kafka.revealed(secrets), "log_level": "2", "allow.auto.create.topics": "false"}


_FIRST_ANSWER_S = 10.0
"""How long the first question may take: whether a broker is there at all."""


class Source:
    """One cluster. ``timeout_s`` bounds each question, and a read without any progress.

    Every method raises a SourceError where Kafka does not answer as it should.
    """

    def __init__(self, options: Mapping[str, str], timeout_s: float = 30.0) -> None:
        self._options = options
        self._where = options["bootstrap.servers"]
        self._timeout_s = timeout_s
        self._admin = client_of(lambda own: admin.AdminClient({**own}, logger=_LOG), options)

    def identity(self, topics: Iterable[str]) -> Identity:
        """What the cluster says of itself and of ``topics``; a missing topic is left out."""
        names = sorted(topics)
        ids: dict[str, str] = {}
        first = min(self._timeout_s, _FIRST_ANSWER_S)
        cluster = self._wait(self._admin.describe_cluster(request_timeout=first))
        if not names:
            return Identity(str(cluster.cluster_id), ids, frozenset())
        described = self._admin.describe_topics(
            TopicCollection(names), request_timeout=self._timeout_s
        )
        for topic, future in described.items():
            answer = self._wait(future, missing_ok=True)
            if answer is not None:
                ids[topic] = str(answer.topic_id)
        return Identity(str(cluster.cluster_id), ids, self._compacted(ids))

    def _compacted(self, topics: Iterable[str]) -> frozenset[str]:
        asked = [_ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, topic) for topic in topics]
        if not asked:
            return frozenset()
        answers = self._admin.describe_configs(asked, request_timeout=self._timeout_s)
        return frozenset(
            str(resource.name)
            for resource, future in answers.items()
            if "compact" in str(self._wait(future)["cleanup.policy"].value)
        )

    def lows(self, places: Iterable[Place]) -> dict[Place, int]:
        """The first offset that each partition still holds."""
        return self._offsets(places, _ADMIN.OffsetSpec.earliest())

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """The last stable offset of each partition: where a read_committed reader ends."""
        return self._offsets(places, _ADMIN.OffsetSpec.latest())

    def _offsets(self, places: Iterable[Place], spec: Any) -> dict[Place, int]:
        asked = {TopicPartition(topic, partition): spec for topic, partition in places}
        if not asked:
            return {}
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout_s
        )
        found = {(each.topic, each.partition): self._wait(one) for each, one in answers.items()}
        return {place: int(answer.offset) for place, answer in found.items()}

    def read(
        self, ranges: Mapping[Place, tuple[int, int]]
    ) -> Iterator[tuple[Place, list[Message]]]:
        """The visible records of each ``[start, until)``, in order within a partition.

        Comes back a last time, with no records, for each partition that is done.
        """
        left = {place: until for place, (start, until) in ranges.items() if start < until}
        yield from ((place, []) for place in ranges if place not in left)
        with closing(self._reader("read_committed")) as consumer:
            consumer.assign([TopicPartition(*place, ranges[place][0]) for place in left])
            quiet_since = time.monotonic()
            while left:
                batches, ended = self._sort(consumer.consume(_BATCH, 0.5), left)
                if batches or ended:
                    quiet_since = time.monotonic()
                elif time.monotonic() - quiet_since > self._timeout_s:
                    raise self._stuck(left)
                yield from batches.items()
                for place in ended:
                    consumer.pause([TopicPartition(*place)])
                    del left[place]
                    yield place, []

    def _sort(
        self, messages: Iterable[Message], left: Mapping[Place, int]
    ) -> tuple[dict[Place, list[Message]], list[Place]]:
        """Records by partition, and the partitions whose range has been passed."""
        batches: dict[Place, list[Message]] = {}
        ended: dict[Place, None] = {}
        for each in messages:
            error = each.error()
            place = (str(each.topic()), int(each.partition() or 0))
            offset = each.offset() or 0
            if error is not None and error.code() in _PASSING:
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise self._translate(error)
            if place not in left or place in ended:
                continue
            if offset >= left[place]:
                ended[place] = None
            elif error is None:
                batches.setdefault(place, []).append(each)
        return batches, list(ended)

    def holds(self, place: Place, offset: int) -> bool:
        """Whether a record of any kind lies at ``offset``, aborted ones included."""
        with closing(self._reader("read_uncommitted")) as consumer:
            consumer.assign([TopicPartition(*place, offset)])
            answer = consumer.poll(self._timeout_s)
            return answer is not None and answer.error() is None and answer.offset() == offset

    def _reader(self, isolation: str) -> Consumer:
        reading = {
            **self._options,
            "group.id": "rivermouth-verify",
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": "true",
            "check.crcs": "true",
            "fetch.wait.max.ms": "100",
        }
        return client_of(lambda own: Consumer({**own}, logger=_LOG), reading)

    def _stuck(self, left: Mapping[Place, int]) -> SourceError:
        names = ", ".join(f"{shown(place)} before {until}" for place, until in left.items())
        return KafkaUnreachable(
            f"nothing came for {self._timeout_s:g} s", where=self._where, found=f"{names} unread"
        )

    def _wait(self, future: Future[Any], *, missing_ok: bool = False) -> Any:
        try:
            return future.result(timeout=self._timeout_s + 5)
        except KafkaException as fault:
            if missing_ok and fault.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise self._translate(fault.args[0]) from fault
        except FutureTimeout as fault:
            raise KafkaUnreachable("no answer in time", where=self._where) from fault

    def _translate(self, error: KafkaError) -> SourceError:
        if error.code() in _AWAY:
            return KafkaUnreachable("no broker answers", where=self._where, found=error.name())
        return KafkaRefused(f"the broker refused: {error.str()}", where=self._where)
