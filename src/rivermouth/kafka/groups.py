"""The edge to consumer groups: committed offsets, for monitors.

A consumer asks, which is never a member. The admin client of librdkafka has the same questions.
But it ends the whole process where a group has no coordinator for a moment (librdkafka issues
5040 and 5397).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as NativeTopicPartition

from rivermouth.config import Config
from rivermouth.config.secret import Secrets
from rivermouth.errors import KafkaRefused, Passing, RivermouthError
from rivermouth.kafka.client import QUIET, translated
from rivermouth.kafka.login import LoginFiles
from rivermouth.kafka.options import client_of
from rivermouth.protocol.offsets import TopicPartition

T = TypeVar("T")

TIMEOUT_S = 5.0
_LOG = logging.getLogger(__name__)
_NOTHING_CAME = {KafkaError._WAIT_COORD, KafkaError._TIMED_OUT}
"""Why no answer came is told beside them, if at all."""
_LIVE = "End them, or write another mirror_group: it is for monitors alone"
_RIGHTS = "Grant the user READ on the group and on its topics"


class Groups(Protocol):
    """The committed offsets of consumer groups. Each question may raise a RivermouthError.

    To be used from one thread at a time.
    """

    def write(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the next offset to read of each of these partitions."""

    def read(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """The committed offset of each partition; None: there is none."""

    def close(self) -> None:
        """Let go of all connections."""


class ConfiguredGroups:
    """The groups of the configured brokers, each connected when it is first asked.

    A connection stays until a question fails, or until files of the login are replaced.
    ``timeout_s`` bounds a read; a write takes at most a few times as long.
    """

    def __init__(self, config: Config, secrets: Secrets, timeout_s: float = TIMEOUT_S) -> None:
        self._config = config
        self._secrets = secrets
        self._timeout_s = timeout_s
        self._clients: dict[str, _Client] = {}

    def write(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        native = [_native(each, offset) for each, offset in offsets.items()]
        committed = self._ask(group, lambda it: it.commit(offsets=native, asynchronous=False))
        for each in committed or ():
            if each.error is not None:
                raise self._refused(group, each.error, str(each.topic))

    def read(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        native = [_native(each) for each in partitions]
        found = self._ask(group, lambda it: it.committed(native, timeout=self._timeout_s))
        offsets: dict[TopicPartition, int | None] = {}
        for each in found:
            if each.error is not None:
                raise self._refused(group, each.error, str(each.topic))
            offset = each.offset if each.offset >= 0 else None
            offsets[TopicPartition(str(each.topic), each.partition)] = offset
        return offsets

    def close(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            client.close()

    def _ask(self, group: str, question: Callable[[Consumer], T]) -> T:
        client = self._client(group)
        client.listen()
        client.errors.clear()  # an old trouble does not explain a new one
        try:
            return question(client.consumer)
        except KafkaException as fault:
            client.listen()
            error = self._refused(group, fault.args[0])
            self._clients.pop(group).close()  # a late answer must not be taken for a newer one
            raise error from fault

    def _client(self, group: str) -> _Client:
        client = self._clients.get(group)
        if client is not None and client.files.replaced():
            self._clients.pop(group).close()
            client = None
        if client is None:
            options = self._config.kafka.revealed(self._secrets)
            client = self._clients[group] = _Client(options, group, self._timeout_s)
        return client

    def _refused(self, group: str, error: KafkaError, topic: str = "") -> RivermouthError:
        client, servers = self._clients[group], self._config.kafka.bootstrap_servers
        where = f"{servers} group {group}"
        if error.code() == KafkaError.UNKNOWN_MEMBER_ID:  # we are none, so others are
            what = "the consumer group has live members"
            found = str(error.str())
            return KafkaRefused(what, where=where, found=found, remedy=_LIVE, passes=Passing.NO)
        if error.code() in _NOTHING_CAME and client.errors:
            error = client.errors[-1]
        refusal = translated(error, client.errors, where, topic)
        if error.code() in (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ):
            refusal.remedy = _RIGHTS
        return refusal


class _Client:
    """A consumer that is no member of its group, and what it has reported."""

    def __init__(self, options: Mapping[str, str], group: str, timeout_s: float) -> None:
        self.errors: list[KafkaError] = []
        self.files = LoginFiles(options)
        wait_ms = str(int(timeout_s * 1000))
        own = {
            "group.id": group,
            "group.protocol": "classic",
            "enable.auto.commit": "false",
            "socket.timeout.ms": wait_ms,
            "session.timeout.ms": wait_ms,  # so long a commit waits for a coordinator
        }
        self.consumer = client_of(self._connect, {**options, **QUIET, **own})

    def _connect(self, options: dict[str, Any]) -> Consumer:
        return Consumer({**options, "error_cb": self.errors.append}, logger=_LOG)

    def listen(self) -> None:
        """Take what the client has to report. It also gets a new token then, if that is due."""
        with suppress(KafkaException):
            while (message := self.consumer.poll(0)) is not None:
                error = message.error()
                if error is not None:
                    self.errors.append(error)

    def close(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self.consumer.close()


def _native(place: TopicPartition, offset: int | None = None) -> NativeTopicPartition:
    if offset is None:
        return NativeTopicPartition(place.topic, place.partition)
    return NativeTopicPartition(place.topic, place.partition, offset)
