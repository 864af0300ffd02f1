"""What an operator asks of one topic, beyond what a run asks of its topics."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from confluent_kafka import Consumer, KafkaException

from rivermouth.kafka.client import Kafka
from rivermouth.kafka.first_records import READER, first_timestamps
from rivermouth.kafka.options import client_of
from rivermouth.protocol.kafka_facts import Replicas
from rivermouth.protocol.offsets import PartitionOffset

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
