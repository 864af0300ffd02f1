"""The edge to Kafka: cluster and topic ids, partitions, watermarks, leader epochs. Reads only.

It uses confluent-kafka: no JVM, no consumer group. Errors of the client are translated here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import confluent_kafka.admin
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
)
from confluent_kafka import TopicPartition as NativeTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from rivermouth.errors import KafkaRefused, KafkaUnreachable, SourceError, TopicMissing
from rivermouth.errors.kafka import Answer, native_answer, no_topics, source_error
from rivermouth.kafka.consumers import first_timestamps, records_within, truncated_logs
from rivermouth.kafka.login import LoginFiles
from rivermouth.kafka.options import client_of
from rivermouth.protocol.kafka_facts import KafkaFacts, Replicas, Retention
from rivermouth.protocol.offsets import Anchor, LogEnd, PartitionOffset, TopicPartition, Watermarks

_NO_LOGIN = {Answer.UNKNOWN_LOGIN, Answer.OLD_TOKEN, Answer.NO_TOKEN, Answer.TLS}


def translated(
    error: KafkaError, reported: Sequence[KafkaError], where: str, topic: str = ""
) -> SourceError:
    """The error of a request that failed. ``reported`` is what ``error_cb`` got meanwhile.

    A request that got no answer in time does not know the cause. What was reported tells it.
    """
    answer = _answer(error)
    if answer is not Answer.AWAY:
        return source_error(answer, str(error.str()), where, topic)
    errors = [each for each in reported if each.code() != KafkaError._ALL_BROKERS_DOWN]
    refused = [each for each in errors if refuses_login(each)]
    if refused:
        newest = refused[-1]
        return source_error(_answer(newest), str(newest.str()), where)
    found = str(errors[0].str()) if errors else str(error.name())
    return source_error(Answer.AWAY, found, where)


def refuses_login(error: KafkaError) -> bool:
    """Whether an error tells why no login came about."""
    return _answer(error) in _NO_LOGIN


def _answer(error: KafkaError) -> Answer:
    return native_answer(str(error.name()), error.str(), retriable=error.retriable())


T = TypeVar("T")
_ADMIN: Any = confluent_kafka.admin  # OffsetSpec has no types
_LOG = logging.getLogger(__name__)
QUIET = {"log_level": "2", "allow.auto.create.topics": "false"}


class Kafka:
    """Facts about topics, as the broker behind ``bootstrap.servers`` reports them.

    ``options`` are Kafka client options under the names of the Java client, with secrets
    revealed; ``timeout_s`` bounds each request. Every method may raise a SourceError.
    """

    def __init__(self, options: Mapping[str, str], timeout_s: float = 10.0) -> None:
        self._where = options["bootstrap.servers"]
        self._timeout_s = timeout_s
        self._options = {**options, **QUIET}
        self._errors: list[KafkaError] = []
        self._files = LoginFiles(options)
        self._admin = client_of(self._connect, self._options)

    def _connect(self, options: dict[str, Any]) -> AdminClient:
        # The callback gets the cause of a time-out, for example a wrong password.
        settings: dict[str, Any] = {**options, "error_cb": self._errors.append}
        return AdminClient(settings, logger=_LOG)

    def _consumer(self, own: Mapping[str, str]) -> Consumer:
        options = {**self._options, **own}
        return client_of(lambda native: Consumer({**native}, logger=_LOG), options)

    def _renew(self) -> None:
        """Connect anew if files of the login were replaced: a client keeps what it has read.

        While the new ones do not go together it stays as it is.
        """
        if self._files.replaced():
            files = LoginFiles(self._options)
            with suppress(KafkaRefused):
                self._admin, self._files = client_of(self._connect, self._options), files

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        """Cluster id, topic ids, and watermarks of every partition of ``topics``."""
        cluster, ids, partitions = self._describe(tuple(topics))
        # The high watermark first: records that arrive later are not behind a transaction.
        written = self._offsets(_native(partitions), _ADMIN.OffsetSpec.latest(), committed=False)
        low, ends = self._low(partitions), self.ends(partitions)
        unstable = {each: written[each].offset - end.offset for each, end in ends.items()}
        held_back = {each: offsets for each, offsets in unstable.items() if offsets > 0}
        return KafkaFacts(cluster, ids, _marks(low, ends), held_back, ends)

    def identities(self, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
        """Cluster id, and topic id by topic; two requests."""
        return self._describe(tuple(topics))[:2]

    def names(self) -> frozenset[str]:
        """The names of all topics that this login may see."""
        return frozenset(self._ask(lambda: self._admin.list_topics(timeout=self._timeout_s)).topics)

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of ``topics`` that do not exist, also to a login that may not see them all."""
        gone: set[str] = set()
        for topic, future in self._describing(tuple(topics)).items():
            try:
                self._wait(future, topic)
            except TopicMissing:
                gone.add(topic)
        return frozenset(gone)

    def replicas(self, topic: str) -> tuple[Replicas, ...]:
        """Leader and replicas of each partition, in order; one request."""
        described = self._wait(self._describing((topic,))[topic], topic)
        return tuple(sorted(map(_replicas, described.partitions), key=lambda each: each.partition))

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has, without those that Kafka does not tell of."""
        counts: dict[str, int] = {}
        for topic, future in self._describing(tuple(topics)).items():
            with suppress(SourceError):
                counts[topic] = len(self._wait(future, topic).partitions)
        return counts

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Last stable offset and leader epoch of each partition; one request."""
        answers = self._offsets(_native(partitions), _ADMIN.OffsetSpec.latest())
        return {each: LogEnd(end.offset, end.leader_epoch) for each, end in answers.items()}

    def truncated_logs(
        self, positions: Mapping[TopicPartition, Anchor]
    ) -> dict[TopicPartition, int]:
        """The end offsets of the logs truncated below ``positions``, see ``consumers``."""
        return truncated_logs(self._consumer, positions, self._timeout_s) if positions else {}

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        """The timestamps of the first records from these offsets on, see ``consumers``."""
        if not wanted:
            return {}
        try:
            return first_timestamps(self._consumer, wanted, self._timeout_s)
        except KafkaException as fault:
            raise self._translate(fault, min(wanted)[0].topic) from fault

    def records_within(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> list[Message]:
        """The records of these ranges, see ``consumers``."""
        if not ranges:
            return []
        try:
            return records_within(self._consumer, ranges, self._timeout_s)
        except KafkaException as fault:
            raise self._translate(fault, min(ranges).topic) from fault

    def watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """First kept offset and last stable offset of each partition."""
        return _marks(self._low(partitions), self.ends(partitions))

    def retentions(self, topics: Iterable[str]) -> dict[str, Retention]:
        """When each topic deletes records; one request."""
        names = list(topics)
        asked = self._ask(
            lambda: self._admin.describe_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names],
                request_timeout=self._timeout_s,
            )
        )
        found = ((each.name, self._wait(future, each.name)) for each, future in asked.items())
        return {name: retention_of(settings, self._where, name) for name, settings in found}

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        """The offset of the first record of each partition whose timestamp is its time, or later.

        None: there is no such record.
        """
        times_ms = [math.ceil(at.timestamp() * 1000) for at in times.values()]
        specs = map(_ADMIN.OffsetSpec.for_timestamp, times_ms)
        asked = dict(zip(_native(times), specs, strict=True))
        answers = self._list(asked, committed=False)
        return {each: at.offset if at.offset >= 0 else None for each, at in answers.items()}

    def _low(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        answers = self._offsets(_native(partitions), _ADMIN.OffsetSpec.earliest())
        return {each: start.offset for each, start in answers.items()}

    def _offsets(
        self, partitions: list[NativeTopicPartition], spec: Any, *, committed: bool = True
    ) -> dict[TopicPartition, Any]:
        return self._list(dict.fromkeys(partitions, spec), committed=committed)

    def _list(
        self, specs: dict[NativeTopicPartition, Any], *, committed: bool
    ) -> dict[TopicPartition, Any]:
        if not specs:
            return {}
        levels = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
        asked = self._ask(
            lambda: self._admin.list_offsets(
                specs,
                isolation_level=levels[committed],
                request_timeout=self._timeout_s,
            )
        )
        return {
            TopicPartition(each.topic, each.partition): self._wait(future, str(each.topic))
            for each, future in asked.items()
        }

    def _describe(
        self, topics: tuple[str, ...]
    ) -> tuple[str, dict[str, str], list[TopicPartition]]:
        asked = self._describing(topics)
        cluster = self._ask(lambda: self._admin.describe_cluster(request_timeout=self._timeout_s))
        ids: dict[str, str] = {}
        partitions: list[TopicPartition] = []
        for topic, described in self._by_topic(asked).items():
            ids[topic] = str(described.topic_id)
            partitions += [TopicPartition(topic, each.id) for each in described.partitions]
        return str(self._wait(cluster, "").cluster_id), ids, sorted(partitions)

    def _by_topic(self, asked: Mapping[str, Future[Any]]) -> dict[str, Any]:
        """The answers by topic. Raises TopicMissing, which names all topics that do not exist."""
        answers: dict[str, Any] = {}
        gone: dict[str, TopicMissing] = {}
        for topic, future in asked.items():
            try:
                answers[topic] = self._wait(future, topic)
            except TopicMissing as fault:
                gone[topic] = fault
        if gone:
            raise no_topics([*gone], self._where) from next(iter(gone.values()))
        return answers

    def _describing(self, topics: tuple[str, ...]) -> Mapping[str, Future[Any]]:
        names = TopicCollection(list(topics))
        return self._ask(
            lambda: self._admin.describe_topics(names, request_timeout=self._timeout_s)
        )

    def _ask(self, question: Callable[[], T]) -> T:
        self._renew()
        self._admin.poll(0)
        # An old error does not explain a new one; a login that failed does, until an answer comes.
        self._errors[:] = [each for each in self._errors if refuses_login(each)]
        try:
            return question()
        except KafkaException as fault:
            raise self._translate(fault, "") from fault

    def _wait(self, future: Future[Any], topic: str) -> Any:
        try:
            answer = future.result(timeout=self._timeout_s + 5)
        except KafkaException as fault:
            raise self._translate(fault, topic) from fault
        except FutureTimeout as fault:
            raise KafkaUnreachable("no answer in time", where=self._where) from fault
        self._admin.poll(0)
        self._errors.clear()
        return answer

    def _translate(self, fault: KafkaException, topic: str) -> SourceError:
        self._admin.poll(0)  # it may report the cause now
        return translated(fault.args[0], self._errors, self._where, topic)


def _marks(
    low: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, LogEnd]
) -> dict[TopicPartition, Watermarks]:
    return {each: Watermarks(low[each], end.offset) for each, end in ends.items()}


def _native(partitions: Iterable[TopicPartition]) -> list[NativeTopicPartition]:
    return [NativeTopicPartition(each.topic, each.partition) for each in partitions]


def _replicas(described: Any) -> Replicas:
    leader = described.leader.id if described.leader is not None else -1
    return Replicas(
        partition=int(described.id),
        leader=leader if leader >= 0 else None,
        replicas=tuple(each.id for each in described.replicas),
        in_sync=tuple(each.id for each in described.isr),
    )


def retention_of(settings: Mapping[str, Any], where: str, topic: str) -> Retention:
    """From an answer to ``describe_configs``. Raises KafkaRefused where a setting is not told."""
    found: dict[str, str] = {}
    for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
        value = getattr(settings.get(name), "value", None)
        if value is None:
            raise KafkaRefused(
                f"the broker does not tell {name}",
                where=f"{where} {topic}",
                remedy="Look it up with the tools of your Kafka service",
            )
        found[name] = str(value)
    age_ms, size = int(found["retention.ms"]), int(found["retention.bytes"])
    return Retention(
        policy=",".join(each.strip() for each in found["cleanup.policy"].split(",")),
        age_ms=age_ms if age_ms >= 0 else None,
        size=size if size >= 0 else None,
    )
