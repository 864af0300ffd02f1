"""What only a consumer can be asked: whether a log was truncated, and how old a record is.

If a replica that lacks the last records becomes leader, the log is truncated, and a new leader
epoch begins. The broker knows the end offset of each epoch. So a record that was read at an
offset in an epoch is still there if the broker's end offset of that epoch is not below it.

A consumer here is never a member of a group: its partitions are assigned.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as NativeTopicPartition

from rivermouth.errors import KafkaUnreachable
from rivermouth.protocol.offsets import Anchor, PartitionOffset, TopicPartition

Make = Callable[[Mapping[str, str]], Consumer]
"""What makes a consumer with these options, besides those of the login."""

_ASKING = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "fetch.wait.max.ms": "10",
}
_FOR_TRUNCATION = {
    **_ASKING,
    "group.id": "rivermouth-epochs",  # never joined: partitions are assigned
    "max.partition.fetch.bytes": "1024",
}

_TRUNCATED = re.compile(r"truncation detected.*broker end offset is (\d+)")


def truncated_logs(
    make: Make, positions: Mapping[TopicPartition, Anchor], timeout_s: float
) -> dict[TopicPartition, int]:
    """The end offset of each log that was truncated below its position, in the position's epoch.

    ``positions`` are offset and leader epoch. Raises KafkaUnreachable if a partition does not
    answer within ``timeout_s``.
    """
    truncated: dict[TopicPartition, int] = {}
    waiting = {(each.topic, each.partition) for each in positions}
    with closing(make(_FOR_TRUNCATION)) as reader:
        reader.assign([_native(each, *anchor) for each, anchor in positions.items()])
        deadline = time.monotonic() + timeout_s
        while waiting and time.monotonic() < deadline:
            answer = reader.poll(0.5)
            if answer is None or answer.topic() is None:
                continue
            answered = (str(answer.topic()), int(answer.partition() or 0))
            waiting.discard(answered)
            end = _end_if_truncated(answer)
            if end is not None:
                truncated[TopicPartition(*answered)] = end
    if waiting:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(waiting))
        raise KafkaUnreachable("no answer about leader epochs", where=names)
    return truncated


def _end_if_truncated(answer: Message) -> int | None:
    """None for a record, an end of partition or an offset out of range: not truncated."""
    error = answer.error()
    if error is None or error.code() != KafkaError._AUTO_OFFSET_RESET:
        return None
    found = _TRUNCATED.search(error.str())
    return int(found[1]) if found else None


_FOR_FIRST_RECORDS = {
    **_ASKING,
    "group.id": "rivermouth-topic",  # never joined: partitions are assigned
    "isolation.level": "read_committed",
    # One record of each partition is wanted: do not fetch what nobody reads.
    "max.partition.fetch.bytes": "65536",
    "queued.min.messages": "1",
    "fetch.queue.backoff.ms": "10",
}


def first_timestamps(
    make: Make, wanted: Collection[PartitionOffset], timeout_s: float
) -> dict[PartitionOffset, int | None]:
    """The timestamp, in ms since 1970, of the first record that a reader sees from each offset on.

    None: there is no such record before the end of the partition. A negative timestamp: the record
    has none. An offset that gave no answer within ``timeout_s``, for all of them, is left out.
    Raises KafkaException.
    """
    found: dict[PartitionOffset, int | None] = {}
    deadline = time.monotonic() + timeout_s
    with closing(make(_FOR_FIRST_RECORDS)) as reader:
        for offsets in _rounds(wanted):
            found |= _read(reader, offsets, deadline)
    return found


def _rounds(wanted: Collection[PartitionOffset]) -> Iterator[dict[TopicPartition, int]]:
    """The offsets in groups with one offset of each partition: a consumer has one position."""
    left = sorted({*wanted})
    while left:
        offsets = dict(reversed(left))
        yield offsets
        left = [each for each in left if offsets[each[0]] != each[1]]


def _read(
    reader: Consumer, offsets: dict[TopicPartition, int], deadline: float
) -> dict[PartitionOffset, int | None]:
    found: dict[PartitionOffset, int | None] = {}
    waiting = dict(offsets)
    reader.assign(
        [NativeTopicPartition(each.topic, each.partition, at) for each, at in offsets.items()]
    )
    while waiting and time.monotonic() < deadline:
        answer = reader.poll(max(0.0, min(0.5, deadline - time.monotonic())))
        if answer is None or answer.topic() is None:
            continue
        place = TopicPartition(str(answer.topic()), int(answer.partition() or 0))
        at = waiting.pop(place, None)
        if at is None:
            continue
        reader.incremental_unassign([_native(place, at)])
        if not _is_gone(answer):
            found[place, at] = _timestamp(answer)
    return found


_FOR_SAMPLES = {
    **_ASKING,
    "group.id": "rivermouth-doctor",  # never joined: partitions are assigned
    "isolation.level": "read_committed",
}


def records_within(
    make: Make, ranges: Mapping[TopicPartition, tuple[int, int]], timeout_s: float
) -> list[Message]:
    """The records that a reader sees in a range of each partition: without its second offset.

    What gave no answer within ``timeout_s``, for all of them, is left out. Raises KafkaException.
    """
    found: list[Message] = []
    waiting, deadline = {*ranges}, time.monotonic() + timeout_s
    with closing(make(_FOR_SAMPLES)) as reader:
        reader.assign([_native(each, start) for each, (start, _) in ranges.items()])
        while waiting and time.monotonic() < deadline:
            answer = reader.poll(max(0.0, min(0.5, deadline - time.monotonic())))
            if answer is None or answer.topic() is None:
                continue
            place = TopicPartition(str(answer.topic()), int(answer.partition() or 0))
            until, offset = ranges[place][1], int(answer.offset() or 0)
            at_end = _is_gone(answer) or _timestamp(answer) is None or offset >= until - 1
            if answer.error() is None and offset < until and place in waiting:
                found.append(answer)
            if at_end:
                waiting.discard(place)
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


def _native(place: TopicPartition, offset: int, epoch: int = -1) -> NativeTopicPartition:
    return NativeTopicPartition(place.topic, place.partition, offset, leader_epoch=epoch)
