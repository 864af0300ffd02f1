"""The code of docs/sinks.md, called by hand: the function that stores rows and offsets in one
transaction, and the consumer that drops repeats, killed between its two commits, too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import Consumer, Producer

import rivermouth
from rivermouth import Batch
from tests.builders import TOPIC, span
from tests.kafka import sink_consumer, sqlite_sink
from tests.lake import Lake
from tests.pages import page
from tests.processes import ROOT
from tests.waiting import wait_for


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """An empty database, to which the function is connected."""
    monkeypatch.setenv("BIDS_DB", str(tmp_path / "bids.db"))
    with closing(sqlite_sink.connect()) as made:
        monkeypatch.setattr(rivermouth, "pooled", lambda key, make: made)
        yield made


def store(start: int, until: int, *offsets: int) -> None:
    """Store a batch of this range in which the records at ``offsets`` are good."""
    places = [{"topic": TOPIC, "partition": 0, "offset": each} for each in offsets]
    rows = [{"auction": each["offset"], "price": 1, "_kafka": each} for each in places]
    sqlite_sink.store(iter(rows), Batch("p", 2, "c", (span(start, until),)), 0)


def stored(database: sqlite3.Connection) -> list[int]:
    return [each for (each,) in database.execute("SELECT auction FROM bids")]


@pytest.mark.unit
def test_what_comes_again_is_stored_once_also_in_a_longer_batch(
    database: sqlite3.Connection,
) -> None:
    store(3, 6, 3, 4, 5)
    store(3, 6, 3, 4, 5)
    store(3, 9, 3, 4, 5, 7, 8)
    assert stored(database) == [3, 4, 5, 7, 8]


@pytest.mark.unit
def test_a_batch_without_a_row_is_no_gap(database: sqlite3.Connection) -> None:
    store(0, 3, 0, 1)
    store(3, 6)
    store(6, 8, 7)
    assert stored(database) == [0, 1, 7]


@pytest.mark.unit
def test_a_database_that_is_behind_is_noticed_before_anything_is_stored(
    database: sqlite3.Connection,
) -> None:
    store(0, 3, 0, 1)
    with closing(sqlite3.connect(":memory:")) as backup:
        database.backup(backup)
        store(3, 6, 4)
        backup.backup(database)
    with pytest.raises(RuntimeError, match=r"t-0\[6,8\): the database knows only what is before 3"):
        store(6, 8, 6, 7)
    assert stored(database) == [0, 1]
    store(3, 8, 4, 6, 7)
    assert stored(database) == [0, 1, 4, 6, 7]


IDS = [b"p/orders/%d/%d" % (number % 2, number // 2) for number in range(40)]


class Killed(RuntimeError):
    """The consumer has died."""


class Dying(Consumer):
    """A consumer that dies when its offsets are to be committed."""

    def commit(self, *_: Any, **__: Any) -> NoReturn:
        raise Killed


@pytest.fixture
def topic(lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A topic with each id, the first half of them again, and those again in another partition."""
    name = "consumed-once"
    lake.topic(name, 2)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", lake.servers)
    monkeypatch.setenv("ORDERS_TOPIC", name)
    monkeypatch.setenv("ORDERS_DB", str(tmp_path / "orders.db"))
    producer = Producer({"bootstrap.servers": lake.servers})
    for place, ids in ((0, [*IDS, *IDS[:20]]), (1, IDS[:20])):
        for each in ids:
            headers: list[tuple[str, str | bytes | None]] = [("trace", b"t"), ("rm-id", each)]
            producer.produce(name, each, partition=place, headers=headers)
    producer.flush()
    return name


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.slow
def test_each_record_is_stored_once_though_it_comes_again_and_the_consumer_dies(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert topic
    database = sink_consumer.open_database()
    with monkeypatch.context() as patched:
        patched.setattr(sink_consumer, "Consumer", Dying)
        dying = sink_consumer.open_consumer()
    with pytest.raises(Killed):
        wait_for(lambda: sink_consumer.store(dying, database) < 0)
    dying.close()
    assert database.execute("SELECT count(*) FROM orders").fetchone()[0] > 0

    second, seen = sink_consumer.open_consumer(), 0

    def ended() -> bool:
        nonlocal seen
        seen += sink_consumer.store(second, database)
        return seen >= len(IDS) + 40

    wait_for(ended)
    second.close()
    stored = database.execute("SELECT id, value FROM orders ORDER BY id").fetchall()
    assert stored == [(each, each) for each in sorted(IDS)]
    third = sink_consumer.open_consumer()
    assert sum(sink_consumer.store(third, database) for _ in range(5)) == 0, (
        "its offsets were committed"
    )
    third.close()


@pytest.mark.unit
def test_the_page_on_sinks_shows_the_consumer() -> None:
    code = (ROOT / "tests" / "kafka" / "sink_consumer.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```" in page("sinks")
