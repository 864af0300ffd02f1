"""For your own tests: a real broker as a pytest fixture, and plain functions to fill it.

Name the module as a plugin, ``pytest_plugins = ["rivermouth.testing"]``, and take the fixture
``rivermouth_broker``. Importing it needs pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rivermouth.local.broker import Broker

__all__ = ["Record", "create_topic", "produce", "rivermouth_broker"]

Record = tuple[bytes | None, bytes | None, int]  # key, value, partition


@pytest.fixture(scope="session")
def rivermouth_broker() -> Iterator[Broker]:
    """One running broker for the whole test session; name your topics apart."""
    with Broker() as broker:
        yield broker


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with one replica and return when it exists. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, partitions, 1, config=dict(config or {}))
    admin.create_topics([topic])[name].result(30)


def produce(bootstrap: str, topic: str, records: Iterable[Record]) -> int:
    """Write ``records`` and return their number when the broker has acknowledged all.

    Order is kept within a partition. Raises KafkaException for the first that failed.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    failed: list[KafkaError] = []
    count = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for key, value, partition in records:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=on_delivery)
            except BufferError:  # librdkafka's queue is full
                producer.poll(0.1)
            else:
                break
        count += 1
        producer.poll(0)
    left = producer.flush(60)
    if failed or left:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))
    return count
