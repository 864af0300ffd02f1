"""Waiting for what another process or thread does, and no longer than it may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

PATIENCE_S = 300
"""So long may a busy machine take for what is a matter of seconds; where all goes well, nobody
waits for it."""


def wait_for(condition: Callable[[], bool], otherwise: str = "it did not happen in time") -> None:
    """Wait until ``condition()`` holds; fail with ``otherwise`` where it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.03)


def delete_topic(servers: str, name: str) -> None:
    """Delete a topic, and wait until its name is free."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([name])[name].result(30)
    wait_for(lambda: name not in admin.list_topics(timeout=10).topics)


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
