"""The timestamps of the first records from given offsets on, by a consumer without a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from rivermouth.protocol.offsets import PartitionOffset
from rivermouth.protocol.offsets import TopicPartition as Partition

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
