"""For your own tests: a real broker as a pytest fixture, and functions that fill it.

Name the module as a plugin, ``pytest_plugins = ["rivermouth.testing"]``, and use the fixture
``rivermouth_broker``, ``rivermouth_registry``, ``rivermouth_store`` or ``rivermouth_spark``. The
module needs pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # where confluent_kafka types it

from rivermouth.local.broker import Broker
from rivermouth.local.registry import LocalRegistry
from rivermouth.local.s3 import LocalS3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Record",
    "create_topic",
    "produce",
    "rivermouth_broker",
    "rivermouth_registry",
    "rivermouth_spark",
    "rivermouth_store",
]

Record = tuple[bytes | None, bytes | None, int]  # key, value, partition
_PATIENT = {
    "broker.session.timeout.ms": "30000"
}  # a pause of a busy machine must not end the broker
_QUIET = {"log_level": 2}  # without librdkafka's warnings; failures are raised


@pytest.fixture(scope="session")
def rivermouth_broker() -> Iterator[Broker]:
    """One running broker for the whole test session; each test needs its own topic names."""
    with Broker(settings=_PATIENT) as broker:
        yield broker


@pytest.fixture(scope="session")
def rivermouth_registry() -> Iterator[LocalRegistry]:
    """One running schema registry for the whole test session; each test needs its own subjects."""
    with LocalRegistry() as registry:
        yield registry


@pytest.fixture(scope="session")
def rivermouth_store() -> Iterator[LocalS3]:
    """One running object store for the whole test session; each test needs its own prefix."""
    with LocalS3() as store:
        yield store


@pytest.fixture(scope="session")
def rivermouth_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session with Delta and Kafka for the whole test session."""
    from rivermouth.local.session import BRIEF, start_session

    session = start_session(tmp_path_factory.mktemp("spark"), java_options=BRIEF)
    yield session
    session.stop()


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with one replica; return when it exists. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    topic = NewTopic(name, partitions, 1, config=dict(config or {}))
    admin.create_topics([topic])[name].result(30)


def produce(bootstrap: str, topic: str, records: Iterable[Record]) -> int:
    """Write ``records``; return their number when the broker has acknowledged all.

    The order within a partition is kept. Raises KafkaException for the first failure.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **_QUIET})
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
