"""The consumer of docs/sinks.md that drops repeats: killed between its two commits, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import Consumer, Producer

from tests.kafka import sink_consumer
from tests.kafka.sink_consumer import open_consumer, open_database, store
from tests.lake import Lake
from tests.pages import page
from tests.processes import ROOT
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

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
def test_each_record_is_stored_once_though_it_comes_again_and_the_consumer_dies(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert topic
    database = open_database()
    with monkeypatch.context() as patched:
        patched.setattr(sink_consumer, "Consumer", Dying)
        dying = open_consumer()
    with pytest.raises(Killed):
        wait_for(lambda: store(dying, database) < 0)
    dying.close()
    assert database.execute("SELECT count(*) FROM orders").fetchone()[0] > 0

    second, seen = open_consumer(), 0

    def ended() -> bool:
        nonlocal seen
        seen += store(second, database)
        return seen >= len(IDS) + 40

    wait_for(ended)
    second.close()
    stored = database.execute("SELECT id, value FROM orders ORDER BY id").fetchall()
    assert stored == [(each, each) for each in sorted(IDS)]
    third = open_consumer()
    assert sum(store(third, database) for _ in range(5)) == 0, "its offsets were committed"
    third.close()


def test_the_page_on_sinks_shows_the_consumer() -> None:
    code = (ROOT / "tests" / "kafka" / "sink_consumer.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```" in page("sinks")
