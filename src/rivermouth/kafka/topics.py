"""What an operator asks of one topic, beyond what a run asks of its topics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from rivermouth.config.problems import quoted
from rivermouth.config.start import LAST, is_beyond_utc
from rivermouth.config.topics import LETTERS, is_legal
from rivermouth.errors import RangesRefused
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.options import client_of
from rivermouth.protocol.kafka_facts import Replicas
from rivermouth.protocol.offsets import PartitionOffset
from rivermouth.protocol.offsets import TopicPartition as Partition

_FIRST = "datetime(1970, 1, 1, tzinfo=timezone.utc)"


def check_topics(names: Iterable[str]) -> None:
    """Raise RangesRefused for a name that no topic can have: Kafka tells less of it."""
    wrong = [each for each in names if not is_legal(each)]
    if wrong:
        raise RangesRefused(
            "no topic can have that name",
            where="topic",
            expected=f"a name of {LETTERS}",
            found=", ".join(map(quoted, wrong)),
            remedy="Correct the name of the topic",
        )


def zoned(at: datetime) -> datetime:
    """The time, if it has a zone. Raises RangesRefused."""
    if at.utcoffset() is None:
        remedy = "Add one: datetime(2026, 11, 23, tzinfo=timezone.utc)"
        raise RangesRefused("a time without a zone", found=at.isoformat(), remedy=remedy)
    return at


def record_time(at: datetime) -> datetime:
    """The time, if Kafka can be asked for records of it. Raises RangesRefused.

    That is one with a zone, from 1970 on: Kafka takes a negative number for an end of the log.
    """
    if zoned(at).timestamp() < 0:
        raise RangesRefused(
            "a time before 1970, which Kafka cannot be asked for",
            expected="a time from 1970-01-01T00:00:00Z on",
            found=at.isoformat(),
            remedy=f"To begin with the first record, write {_FIRST}",
        )
    if is_beyond_utc(at):
        raise RangesRefused(
            "a time after the year 9999 in UTC",
            expected=LAST,
            found=at.isoformat(),
            remedy="Write an earlier one",
        )
    return at


READER = {
    "group.id": "rivermouth-topic",  # never joined: partitions are assigned
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": "10",
    # One record of each partition is wanted: do not fetch what nobody reads.
    "max.partition.fetch.bytes": "65536",
    "queued.min.messages": "1",
    "fetch.queue.backoff.ms": "10",
}
"""Options of a consumer that reads one record of each partition."""


def first_timestamps(
    wanted: Collection[PartitionOffset], consumer: Callable[[], Consumer], timeout_s: float
) -> dict[PartitionOffset, int | None]:
    """The timestamp, in ms since 1970, of the first record that a reader sees from each offset on.

    None: there is no such record before the end of the partition. A negative timestamp: the record
    has none. An offset that gave no answer within ``timeout_s``, for all of them, is left out.
    ``consumer`` makes one with the options ``READER``. Raises KafkaException.
    """
    found: dict[PartitionOffset, int | None] = {}
    deadline = time.monotonic() + timeout_s
    with closing(consumer()) as reader:
        for offsets in _rounds(wanted):
            found |= _read(reader, offsets, deadline)
    return found


def _rounds(wanted: Collection[PartitionOffset]) -> Iterator[dict[Partition, int]]:
    """The offsets in groups with one offset of each partition: a consumer has one position."""
    left = sorted({*wanted})
    while left:
        offsets = dict(reversed(left))
        yield offsets
        left = [each for each in left if offsets[each[0]] != each[1]]


def _read(
    reader: Consumer, offsets: dict[Partition, int], deadline: float
) -> dict[PartitionOffset, int | None]:
    found: dict[PartitionOffset, int | None] = {}
    waiting = dict(offsets)
    reader.assign([TopicPartition(each.topic, each.partition, at) for each, at in offsets.items()])
    while waiting and time.monotonic() < deadline:
        answer = reader.poll(max(0.0, min(0.5, deadline - time.monotonic())))
        if answer is None or answer.topic() is None:
            continue
        place = Partition(str(answer.topic()), int(answer.partition() or 0))
        at = waiting.pop(place, None)
        if at is None:
            continue
        reader.incremental_unassign([TopicPartition(place.topic, place.partition)])
        if not _is_gone(answer):
            found[place, at] = _timestamp(answer)
    return found


def _is_gone(answer: Message) -> bool:
    """Whether the offset was deleted since it was asked for."""
    error = answer.error()
    return error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET


def _timestamp(answer: Message) -> int | None:
    """None at the end of the partition. Raises KafkaException for any other error."""
    error = answer.error()
    if error is None:
        return answer.timestamp()[1]
    if error.code() == KafkaError._PARTITION_EOF:
        return None
    raise KafkaException(error)


_LOG = logging.getLogger(__name__)


class TopicKafka(Kafka):
    """``Kafka``, and where the partitions of a topic are kept, and how old its records are."""

    def replicas(self, topic: str) -> tuple[Replicas, ...]:
        """Leader and replicas of each partition, in order; one request."""
        described = self._wait(self._describing((topic,))[topic], topic)
        return tuple(sorted(map(_replicas, described.partitions), key=lambda each: each.partition))

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        """The timestamps of the first records from these offsets on, see ``first_records``."""
        if not wanted:
            return {}

        def consumer() -> Consumer:
            options = {**self._options, **READER}
            return client_of(lambda native: Consumer({**native}, logger=_LOG), options)

        try:
            return first_timestamps(wanted, consumer, self._timeout_s)
        except KafkaException as fault:
            raise self._translate(fault, min(wanted)[0].topic) from fault


def _replicas(told: Any) -> Replicas:
    leader = told.leader.id if told.leader is not None else -1
    return Replicas(
        partition=int(told.id),
        leader=leader if leader >= 0 else None,
        replicas=tuple(each.id for each in told.replicas),
        in_sync=tuple(each.id for each in told.isr),
    )
