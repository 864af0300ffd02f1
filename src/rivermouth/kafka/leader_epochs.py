"""Finds truncated logs by leader epochs (KIP-320), also if the log has grown again since.

If a replica that lacks the last records becomes leader, the log is truncated, and a new leader
epoch begins. The broker knows the end offset of each epoch. So a record that was read at an
offset in an epoch is still there if the broker's end offset of that epoch is not below it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from rivermouth.errors import KafkaUnreachable
from rivermouth.protocol.offsets import Anchor
from rivermouth.protocol.offsets import TopicPartition as Partition

CONSUMER = {
    "group.id": "rivermouth-epochs",  # never joined: partitions are assigned
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "fetch.wait.max.ms": "10",
    "max.partition.fetch.bytes": "1024",
}
"""Options of a consumer that notices truncation."""

_TRUNCATED = re.compile(r"truncation detected.*broker end offset is (\d+)")


def truncated_logs(
    positions: Mapping[Partition, Anchor], consumer: Callable[[], Consumer], timeout_s: float
) -> dict[Partition, int]:
    """The end offset of each log that was truncated below its position, in the position's epoch.

    ``positions`` are offset and leader epoch. ``consumer`` makes one with the options
    ``CONSUMER``. Raises KafkaUnreachable if a partition does not answer within ``timeout_s``.
    """
    truncated: dict[Partition, int] = {}
    waiting = {(each.topic, each.partition) for each in positions}
    with closing(consumer()) as reader:
        reader.assign(
            [
                TopicPartition(each.topic, each.partition, offset, leader_epoch=epoch)
                for each, (offset, epoch) in positions.items()
            ]
        )
        deadline = time.monotonic() + timeout_s
        while waiting and time.monotonic() < deadline:
            answer = reader.poll(0.5)
            if answer is None or answer.topic() is None:
                continue
            answered = (str(answer.topic()), int(answer.partition() or 0))
            waiting.discard(answered)
            end = _end_if_truncated(answer)
            if end is not None:
                truncated[Partition(*answered)] = end
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
