"""The checker's own client of Kafka: identities, offsets, and exact ranges of records.

It reads with ``read_committed`` from explicit offsets, joins no group and commits nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Protocol

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
from rivermouth.verification.formats.reader import CannotTell
from rivermouth.verification.ledger.entry import Partition, shown


@dataclass(frozen=True)
class Identity:
    """Cluster id; topic ids of the topics that exist; those that Kafka compacts.

    ``unknown_policy`` are topics whose settings the user may not read: Kafka may compact them.
    """

    cluster: str
    topics: Mapping[str, str]
    compacted: frozenset[str]
    unknown_policy: frozenset[str] = frozenset()

    @property
    def thinned(self) -> frozenset[str]:
        """The topics of which compaction may have removed records."""
        return self.compacted | self.unknown_policy


class Source(Protocol):
    """One cluster, read with ``read_committed``. Each method raises SourceError.

    An offset may have no visible record: a transaction marker, an aborted record, or a record
    that compaction removed.
    """

    def identity(self, topics: Iterable[str]) -> Identity:
        """What the cluster says of itself and of ``topics``; a missing topic is left out."""

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """All partitions of ``topics``; a missing topic is left out."""

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that each partition still holds."""

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The last stable offset of each partition: where a read_committed reader ends."""

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, list[Message]]]:
        """The visible records of each ``[start, until)``, in order within a partition.

        Yields an empty list last, once for each partition, when it has been read to the end.
        """

    def existing(self, partition: Partition, offsets: Iterable[int]) -> set[int]:
        """Those of ``offsets`` at which there is a record, also one that was aborted."""


_HEADERS = methodcaller("headers")
"""``message.headers()``, where Python checks the result. The client gives one and leaves an error
behind, which in a plain call may come up at any later place.
"""


def headers_of(message: Message) -> Sequence[tuple[str, bytes | None]] | None:
    """Pairs of name and value, in order; empty where there are none.

    None where a name is not UTF-8: Spark's client replaces such bytes, this one gives no header at
    all.
    """
    try:
        found: Any = _HEADERS(message)
    except (UnicodeDecodeError, SystemError):
        return None
    return found or ()


IN_HEADER = "header"
"""The framing of records of which a header has the number of the schema."""


def with_number(
    what: str, given: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None
) -> bytes | None:
    """The ``value`` or ``key`` of a record, as if the number of its schema stood ahead of it.

    See docs/records.md. Where no header has the number, no zero byte is ahead. Raises CannotTell
    where the ``headers`` cannot be read.
    """
    if not given:
        return given
    if headers is None:
        raise CannotTell("the headers of the record")
    found = [each for name, each in headers if name == f"apicurio.{what}.contentId"]
    number = found[-1] if found else None
    if number is None or len(number) != 8 or any(number[:4]):
        return b"\1" + given
    return b"\0" + number[4:] + given


# confluent-kafka calls itself typed, but does not type or export what is needed here.
_ADMIN: Any = admin
_AWAY = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
}
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    # librdkafka asks for the group that it must be given, and nothing here needs it.
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_BATCH = 10_000
_LOG = logging.getLogger(__name__)


def client_options(config: Config, secrets: Secrets = unresolved) -> dict[str, str]:
    """The Kafka options of a configuration, with its secrets in clear text."""
    return {**config.kafka.revealed(secrets), "log_level": "2", "allow.auto.create.topics": "false"}


_APART = 50_000
"""Offsets that are further apart are not read in one go."""
_FIRST_ANSWER_S = 10.0
"""Limit of the first request: whether any broker answers."""


class KafkaSource:
    """A ``Source``. ``timeout_s`` limits each request, and a read that makes no progress."""

    def __init__(self, options: Mapping[str, str], timeout_s: float = 30.0) -> None:
        self._options = options
        self._where = options["bootstrap.servers"]
        self._timeout_s = timeout_s
        self._admin = client_of(lambda own: admin.AdminClient({**own}, logger=_LOG), options)

    def identity(self, topics: Iterable[str]) -> Identity:
        """See ``Source``."""
        names = sorted(topics)
        first = min(self._timeout_s, _FIRST_ANSWER_S)
        cluster = self._wait(self._admin.describe_cluster(request_timeout=first))
        if not names:
            return Identity(str(cluster.cluster_id), {}, frozenset())
        ids = {name: str(each.topic_id) for name, each in self._described(names).items()}
        policies = self._policies(ids)
        compacted = frozenset(name for name, each in policies.items() if "compact" in (each or ""))
        unknown_policy = frozenset(name for name, each in policies.items() if not each)
        return Identity(str(cluster.cluster_id), ids, compacted, unknown_policy)

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """See ``Source``."""
        found = self._described(sorted(topics))
        return [(name, each.id) for name, topic in found.items() for each in topic.partitions]

    def _described(self, names: list[str]) -> dict[str, Any]:
        """What Kafka tells of these topics, without the missing ones."""
        asked = TopicCollection(names)
        described = self._admin.describe_topics(asked, request_timeout=self._timeout_s)
        found = {
            name: self._wait(one, none_on=KafkaError.UNKNOWN_TOPIC_OR_PART)
            for name, one in described.items()
        }
        return {name: each for name, each in found.items() if each is not None}

    def _policies(self, topics: Iterable[str]) -> dict[str, str | None]:
        """``cleanup.policy`` by topic; None where the user may not read it, or there is none."""
        asked = [_ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, topic) for topic in topics]
        if not asked:
            return {}
        answers = self._admin.describe_configs(asked, request_timeout=self._timeout_s)
        none_on = KafkaError.TOPIC_AUTHORIZATION_FAILED
        found = {str(each.name): self._wait(one, none_on=none_on) for each, one in answers.items()}
        policies = {name: (each or {}).get("cleanup.policy") for name, each in found.items()}
        return {name: each and each.value for name, each in policies.items()}

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """See ``Source``."""
        return self._offsets(partitions, _ADMIN.OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """See ``Source``."""
        return self._offsets(partitions, _ADMIN.OffsetSpec.latest())

    def _offsets(self, partitions: Iterable[Partition], spec: Any) -> dict[Partition, int]:
        asked = {TopicPartition(*each): spec for each in partitions}
        if not asked:
            return {}
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout_s
        )
        found = {(each.topic, each.partition): self._wait(one) for each, one in answers.items()}
        return {partition: int(answer.offset) for partition, answer in found.items()}

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, list[Message]]]:
        """See ``Source``."""
        left = {partition: until for partition, (start, until) in ranges.items() if start < until}
        yield from ((partition, []) for partition in ranges if partition not in left)
        with closing(self._reader("read_committed")) as consumer:
            consumer.assign([TopicPartition(*each, ranges[each][0]) for each in left])
            yield from self._read_until(consumer, left)

    def _read_until(
        self, consumer: Consumer, ends: Mapping[Partition, int]
    ) -> Iterator[tuple[Partition, list[Message]]]:
        """What an assigned consumer gets before the ``ends``; an empty list last, as ``read``."""
        left, quiet_since = {**ends}, time.monotonic()
        while left:
            batches, ended = self._sort(consumer.consume(_BATCH, 0.5), left)
            if batches or ended:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > self._timeout_s:
                raise self._stuck(left)
            yield from batches.items()
            for partition in ended:
                del left[partition]
                if left:
                    consumer.pause([TopicPartition(*partition)])
                yield partition, []

    def _sort(
        self, messages: Iterable[Message], left: Mapping[Partition, int]
    ) -> tuple[dict[Partition, list[Message]], list[Partition]]:
        """Records by partition, and the partitions that have been read to their end.

        An end is noticed at the first message at or after it, be it only the end of the log:
        the last offsets of a range may have no visible record.
        """
        batches: dict[Partition, list[Message]] = {}
        ended: dict[Partition, None] = {}
        for each in messages:
            error = each.error()
            partition = (str(each.topic()), int(each.partition() or 0))
            offset = each.offset() or 0
            if error is not None and error.code() in _PASSING:
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise self._translate(error)
            if partition not in left or partition in ended:
                continue
            if offset >= left[partition]:
                ended[partition] = None
            elif error is None:
                batches.setdefault(partition, []).append(each)
        return batches, list(ended)

    def existing(self, partition: Partition, offsets: Iterable[int]) -> set[int]:
        """See ``Source``. What lies between two offsets is read too, if it is not much."""
        wanted = sorted({*offsets})
        found: set[int] = set()
        with closing(self._reader("read_uncommitted")) as consumer:
            for first, last in _stretches(wanted):
                consumer.assign([TopicPartition(*partition, first)])
                for _, messages in self._read_until(consumer, {partition: last + 1}):
                    found.update(int(each.offset() or 0) for each in messages)
        return found & {*wanted}

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

    def _stuck(self, left: Mapping[Partition, int]) -> SourceError:
        names = ", ".join(f"{shown(each)} before {until}" for each, until in left.items())
        return KafkaUnreachable(
            f"Kafka returned no record for {self._timeout_s:g} s",
            where=self._where,
            found=f"not read: {names}",
        )

    def _wait(self, future: Future[Any], *, none_on: int | None = None) -> Any:
        """The answer; None where Kafka answers with the error ``none_on``."""
        limit_s = self._timeout_s + 5  # the client's own limit comes first, with a better reason
        try:
            return future.result(timeout=limit_s)
        except KafkaException as fault:
            if none_on is not None and fault.args[0].code() == none_on:
                return None
            raise self._translate(fault.args[0]) from fault
        except FutureTimeout as fault:
            raise KafkaUnreachable(f"no answer within {limit_s:g} s", where=self._where) from fault

    def _translate(self, error: KafkaError) -> SourceError:
        if error.code() in _AWAY:
            return KafkaUnreachable("no broker answers", where=self._where, found=error.name())
        return KafkaRefused(f"the broker refused: {error.str()}", where=self._where)


def _stretches(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """The first and last of each run of ascending offsets that are near to each other."""
    found: list[tuple[int, int]] = []
    for each in offsets:
        if found and each - found[-1][1] <= _APART:
            found[-1] = (found[-1][0], each)
        else:
            found.append((each, each))
    return found
