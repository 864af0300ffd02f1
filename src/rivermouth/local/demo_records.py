"""The records of the demo's topics, and how they get there.

One seed, so they are the same in every demo. About one record in a thousand is bad, for each of
the reasons that occur in real streams. About one order change in a hundred is a tombstone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import chain, islice

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rivermouth.errors import KafkaRefused

Record = tuple[bytes | None, bytes | None, int]
"""Key, value, partition."""

BID_PARTITIONS = 4
ORDER_PARTITIONS = 3
ORDERS = 5_000

_SEED = 20_260_101
_START = datetime(2026, 1, 1, tzinfo=timezone.utc)
_CHANNELS = ("apple", "baidu", "facebook", "google")
_STATUSES = ("open", "paid", "packed", "shipped", "delivered", "returned")
_FILLER = "the bidder asks to be told when the auction ends"
_BAD_EVERY = 1_000
_TOMBSTONE_EVERY = 100

_BAD_BIDS: tuple[Record, ...] = (
    (None, b'{"auction": 1007, "bidder": 20', 0),  # cut off
    (None, b"not json at all", 1),
    (None, b'{"auction": "a hammer", "bidder": 2, "price": 100}', 2),  # text for a number
    (None, b"", 3),
    (None, None, 0),  # a tombstone where nothing can be deleted
    (None, b"\xff\xfe\x00", 1),
)
_BAD_ORDERS: tuple[Record, ...] = (
    (b"17", b'{"order_id": 17, "status": "pa', 17 % ORDER_PARTITIONS),
    (b"18", b'{"status": "paid", "amount": 1.50}', 18 % ORDER_PARTITIONS),  # no key column
    (b"seventeen", None, 0),  # a tombstone for a key that is no number
    (b"19", b'["an", "array"]', 19 % ORDER_PARTITIONS),
)


def bid_records(count: int) -> Iterator[Record]:
    """``count`` records of about 230 bytes, spread over the partitions in turn."""
    chance = random.Random(_SEED)
    for number in range(count):
        if number % _BAD_EVERY == _BAD_EVERY - 1:
            yield _BAD_BIDS[number // _BAD_EVERY % len(_BAD_BIDS)]
            continue
        auction = 1_000 + int(chance.random() ** 3 * 500)  # a few auctions get most bids
        channel = _CHANNELS[number % len(_CHANNELS)]
        price = int(100 * 10 ** (chance.random() * 5))
        value = (
            f'{{"auction":{auction},"bidder":{2_000 + int(chance.random() * 9_000)},'
            f'"price":{price},"channel":"{channel}",'
            f'"url":"https://{channel}.example/item?id={auction}&ref={number:08d}",'
            f'"at":"{_moment(number)}","extra":"{_FILLER}"}}'
        )
        yield None, value.encode(), number % BID_PARTITIONS


def order_records(count: int) -> Iterator[Record]:
    """``count`` changes of 5,000 orders; all changes of an order are in one partition.

    Some changes arrive late: they must not overwrite a newer change.
    """
    chance = random.Random(_SEED + 1)
    for number in range(count):
        if number % _BAD_EVERY == _BAD_EVERY - 1:
            yield _BAD_ORDERS[number // _BAD_EVERY % len(_BAD_ORDERS)]
            continue
        order_id = int(chance.random() * ORDERS)
        late = count // 3 if chance.random() < 0.02 else 0
        progress = number * len(_STATUSES) // count + int(chance.random() * 3) - 1
        status = _STATUSES[min(max(progress, 0), len(_STATUSES) - 1)]
        key, partition = str(order_id).encode(), order_id % ORDER_PARTITIONS
        if chance.random() < 1 / _TOMBSTONE_EVERY:
            yield key, None, partition
            continue
        value = (
            f'{{"order_id":{order_id},"status":"{status}",'
            f'"amount":{chance.randrange(100, 90_000) / 100:.2f},'
            f'"updated_at":"{_moment(max(0, number - late))}"}}'
        )
        yield key, value.encode(), partition


def aborted_records(count: int) -> Iterator[Record]:
    """Order changes of a transaction that is aborted: no reader may see them."""
    for number in range(count):
        value = f'{{"order_id":{number},"status":"ABORTED","updated_at":"2027-01-01T00:00:00Z"}}'
        yield str(number).encode(), value.encode(), number % ORDER_PARTITIONS


def _moment(number: int) -> str:
    """The time of a record: ten milliseconds after the record before it."""
    at = _START + timedelta(milliseconds=10 * number)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_POLL_EVERY = 2_000


def fill(bootstrap_servers: str, *, bids: int, changes: int, aborted: int) -> None:
    """Create both topics and produce the records; return when all are acknowledged.

    Half of the order changes come before the aborted transaction, half after it. Raises
    KafkaRefused.
    """
    try:
        _create_topics(bootstrap_servers)
        producer = Producer(_options(bootstrap_servers))
        of_orders = order_records(changes)
        before = islice(of_orders, changes // 2)
        _produce(producer, chain(_to("orders", before), _to("bids", bid_records(bids))))
        _abort(bootstrap_servers, aborted)
        _produce(producer, _to("orders", of_orders))
    except KafkaException as fault:
        what = "the broker refused the demo's records"
        raise KafkaRefused(what, found=str(fault.args[0])) from fault


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
    _produce(producer, _to("orders", aborted_records(count)))
    producer.abort_transaction(30)


def _options(bootstrap_servers: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "log_level": 2,
        "enable.idempotence": True,
        "linger.ms": 50,
        "queue.buffering.max.messages": 200_000,
    }
