"""Whether a partition's log was cut and has grown again, by leader epochs (KIP-320).

A log is cut where a replica that lacks its end becomes leader. That begins a new leader
epoch; so an offset that was reached in an epoch is still that record as long as the broker
says that this epoch's records end at the offset or after it.
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

READER = {
    "group.id": "rivermouth-epochs",  # never joined: partitions are assigned
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "fetch.wait.max.ms": "10",
    "max.partition.fetch.bytes": "1024",
}
_CUT = re.compile(r"truncation detected.*broker end offset is (\d+)")


def truncated_logs(
    anchors: Mapping[Partition, Anchor], reader: Callable[[], Consumer], timeout_s: float
) -> dict[Partition, int]:
    """Where the logs end that were cut below their anchor, in its epoch.

    ``reader`` makes a consumer with ``READER``'s settings. Raises KafkaUnreachable where
    a partition does not answer within ``timeout_s``.
    """
    cut: dict[Partition, int] = {}
    waiting = {(each.topic, each.partition) for each in anchors}
    with closing(reader()) as consumer:
        consumer.assign(
            [
                TopicPartition(each.topic, each.partition, offset, leader_epoch=epoch)
                for each, (offset, epoch) in anchors.items()
            ]
        )
        until = time.monotonic() + timeout_s
        while waiting and time.monotonic() < until:
            answer = consumer.poll(0.5)
            if answer is None or answer.topic() is None:
                continue
            place = (str(answer.topic()), int(answer.partition() or 0))
            waiting.discard(place)
            end = _end_if_cut(answer)
            if end is not None:
                cut[Partition(*place)] = end
    if waiting:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(waiting))
        raise KafkaUnreachable("no answer to what became of leader epochs", where=names)
    return cut


def _end_if_cut(answer: Message) -> int | None:
    """A record, an end or an offset out of range is an answer too: not cut."""
    error = answer.error()
    if error is None or error.code() != KafkaError._AUTO_OFFSET_RESET:
        return None
    told = _CUT.search(error.str())
    return int(told[1]) if told else None
