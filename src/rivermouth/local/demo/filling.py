"""Writes the demo's records into Kafka: two topics, and an aborted transaction."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # where confluent_kafka types it

from rivermouth.errors import KafkaRefused, SourceError
from rivermouth.local.demo import records
from rivermouth.local.demo.records import BID_PARTITIONS, ORDER_PARTITIONS, Record

_POLL_EVERY = 2_000


def fill(bootstrap_servers: str, *, bids: int, changes: int, aborted: int) -> None:
    """Create both topics and produce the records; return when all are acknowledged.

    Half of the order changes come before the aborted transaction, half after it. Raises a
    SourceError.
    """
    try:
        _create_topics(bootstrap_servers)
        producer = Producer(_options(bootstrap_servers))
        of_orders = records.orders(changes)
        before = islice(of_orders, changes // 2)
        _produce(producer, chain(_to("orders", before), _to("bids", records.bids(bids))))
        _abort(bootstrap_servers, aborted)
        _produce(producer, _to("orders", of_orders))
    except KafkaException as fault:
        raise _refused(fault) from fault


Addressed = tuple[str, Record]


def _to(topic: str, each: Iterable[Record]) -> Iterable[Addressed]:
    return ((topic, record) for record in each)


def _create_topics(bootstrap_servers: str) -> None:
    admin = AdminClient(_options(bootstrap_servers))
    topics = [NewTopic("bids", BID_PARTITIONS, 1), NewTopic("orders", ORDER_PARTITIONS, 1)]
    for created in admin.create_topics(topics).values():
        created.result(30)


def _produce(producer: Producer, addressed: Iterable[Addressed]) -> None:
    """Produce in order within each partition. Raises KafkaException for a refused record."""
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for number, (topic, (key, value, partition)) in enumerate(addressed):
        if number % _POLL_EVERY == 0:
            producer.poll(0)
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=on_delivery)
                break
            except BufferError:  # librdkafka's queue is full
                producer.poll(0.05)
    left = producer.flush(60)
    if failed or left:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))


def _abort(bootstrap_servers: str, count: int) -> None:
    producer = Producer({**_options(bootstrap_servers), "transactional.id": "rivermouth-demo"})
    producer.init_transactions(30)
    producer.begin_transaction()
    _produce(producer, _to("orders", records.aborted(count)))
    producer.abort_transaction(30)


def _options(bootstrap_servers: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "log_level": 2,
        "enable.idempotence": True,
        "linger.ms": 50,
        "queue.buffering.max.messages": 200_000,
    }


def _refused(fault: KafkaException) -> SourceError:
    return KafkaRefused("the broker refused the demo's records", found=str(fault.args[0]))
