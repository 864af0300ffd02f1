"""Orders from Kafka into SQLite, each once: a record that comes again has an id that is there."""

import os
import sqlite3

from confluent_kafka import Consumer


def open_database() -> sqlite3.Connection:
    database = sqlite3.connect(os.environ["ORDERS_DB"], isolation_level=None)
    database.execute("CREATE TABLE IF NOT EXISTS orders (id BLOB PRIMARY KEY, value BLOB)")
    return database


def open_consumer() -> Consumer:
    options = {
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP"],
        "group.id": "orders",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(options)
    consumer.subscribe([os.environ["ORDERS_TOPIC"]])
    return consumer


def store(consumer: Consumer, database: sqlite3.Connection) -> int:
    """Store what comes next; return how many records that were, with repeats."""
    rows = []
    for each in consumer.consume(500, timeout=1):
        if each.error():
            raise RuntimeError(each.error())
        rows.append((dict(each.headers() or [])["rm-id"], each.value()))
    with database:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?)", rows)
    if rows:  # only now: what was not stored yet is read again after a crash
        consumer.commit(asynchronous=False)
    return len(rows)
