"""Waiting for what another process or thread does, and no longer than it may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from deltalake import DeltaTable

PATIENCE_S = 300
"""So long may a busy machine take for what is a matter of seconds; where all goes well, nobody
waits for it."""
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def wait_for(condition: Callable[[], bool], otherwise: str = "it did not happen in time") -> None:
    """Wait until ``condition()`` holds; fail with ``otherwise`` where it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.03)


def partitions_of(servers: str, topic: str) -> int:
    """How many partitions Kafka tells producers of."""
    admin = AdminClient({"bootstrap.servers": servers})
    return len(admin.list_topics(topic, timeout=60).topics[topic].partitions)


def add_partition(servers: str, topic: str) -> int:
    """Add a partition, and wait until Kafka tells of it; how many there are then."""
    wanted = partitions_of(servers, topic) + 1
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, wanted)])[topic].result(60)
    wait_for(lambda: partitions_of(servers, topic) == wanted)
    return wanted


def delete_records(servers: str, topic: str, before: int, partition: int = 0) -> None:
    """Let Kafka delete the records before an offset."""
    admin = AdminClient({"bootstrap.servers": servers})

    def deleted() -> bool:
        place = TopicPartition(topic, partition, before)
        [answer] = admin.delete_records([place]).values()
        try:
            answer.result(30)
        except KafkaException as fault:  # a topic that was just made may have no leader yet
            if fault.args[0].code() in _NO_LEADER:
                return False
            raise
        return True

    wait_for(deleted)


def wait_for_markers(options: Mapping[str, object]) -> None:
    """Wait until the transaction that a producer with these options has ended shows its end.

    Kafka answers a commit or an abort before the markers are in the log, and takes no new producer
    of the same id before they are.
    """
    Producer(dict(options)).init_transactions(PATIENCE_S)


def wait_for_rows(table: Path, count: int) -> None:
    """Wait until the table there holds so many rows."""
    missed = f"{table} did not come to hold {count} rows"
    wait_for(lambda: rows_in(table) >= count, missed)


def rows_in(table: Path) -> int:
    """How many rows a Delta table holds; 0 while there is none."""
    return DeltaTable(table).count() if DeltaTable.is_deltatable(str(table)) else 0
