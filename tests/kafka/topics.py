"""What tests do to topics beyond filling them: transactions, retention, more partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer, TopicPartition, admin
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from rivermouth.config import Config
from rivermouth.testing import produce
from rivermouth.verification.kafka.client import KafkaSource, client_options
from tests.waiting import wait_for, wait_for_markers

_ADMIN: Any = admin  # it does not export all that it has
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "0",
}
"""The options of a topic that is compacted at once, where the broker's cleaner does not wait."""
CLEANS_AT_ONCE = {"log.cleaner.backoff.ms": "100"}
"""The setting of such a broker."""


def in_transaction(
    servers: str, topic: str, *values: bytes, commit: bool | None, key: bytes | None = None
) -> Producer:
    """Write records in a transaction; it stays open where ``commit`` is None."""
    options: dict[str, Any] = {
        "bootstrap.servers": servers,
        "transactional.id": f"{topic}-{commit}",
        "transaction.timeout.ms": 600_000,
    }
    producer = Producer(options)
    producer.init_transactions()
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, key, partition=0)
    producer.flush()
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)()
        wait_for_markers(options)
    return producer


def delete_before(servers: str, topic: str, partition: int, offset: int) -> None:
    """Delete the records of a partition before ``offset``, as retention does."""
    client = AdminClient({"bootstrap.servers": servers})
    [deleted] = client.delete_records([TopicPartition(topic, partition, offset)]).values()
    deleted.result(30)


def add_partitions(servers: str, topic: str, count: int) -> None:
    """Let the topic have so many partitions, and wait until it has."""
    client = AdminClient({"bootstrap.servers": servers})
    [added] = client.create_partitions([NewPartitions(topic, count)]).values()
    added.result(30)
    wait_for(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == count)


def let_compact(servers: str, topic: str) -> None:
    """Let Kafka compact a topic from now on."""
    made, set_to = _ADMIN.ConfigEntry, _ADMIN.AlterConfigOpType.SET
    changes = [made(*each, incremental_operation=set_to) for each in COMPACT.items()]
    changed = _ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, topic, incremental_configs=changes)
    client = _ADMIN.AdminClient({"bootstrap.servers": servers})
    [done] = client.incremental_alter_configs([changed]).values()
    done.result(30)


def wait_for_compaction(
    servers: str, config: Config, topic: str, offsets: Iterable[int], filler: bytes
) -> None:
    """Write until the cleaner has removed these offsets: it leaves the newest segment alone."""
    source, gone = KafkaSource(client_options(config)), [*offsets]

    def cleaned() -> bool:
        if not source.existing((topic, 0), gone):
            return True
        produce(servers, topic, [(b"filler", filler, 0)])
        return False

    wait_for(cleaned, "the log cleaner did not run")
