"""What a small run reads: records of every kind, written in transactions, with a history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

EVENTS, STATE = "checker-events", "checker-state"
"""The topics, of two partitions each, of an append and of an upsert."""

Write = tuple[str, int, str | None, str | None]  # topic, partition, key, value


class Story:
    """Writes records in transactions and notes in a history what became of each."""

    def __init__(self, servers: str, history: Path) -> None:
        self._history = history
        self._next = 0
        options = {"bootstrap.servers": servers, "transactional.id": "checker", "log_level": 2}
        self._producer = Producer(options)
        self._producer.init_transactions(30)

    def write(self, writes: Iterable[Write], *, commit: bool = True) -> None:
        """One transaction, committed or aborted."""
        lines: list[dict[str, Any]] = []
        self._producer.begin_transaction()
        for topic, partition, key, value in writes:
            self._next += 1
            line = {"id": self._next, "op": "append", "topic": topic, "partition": partition}
            line |= {"key": key, "value": value, "txn": 1}
            lines.append(line)
            self._note({**line, "phase": "intent"})

            def delivered(error: KafkaError | None, message: Message, at: int = len(lines)) -> None:
                assert error is None, error
                lines[at - 1]["offset"] = message.offset()

            self._producer.produce(topic, value, key, partition, on_delivery=delivered)
        self._producer.flush(30)
        if commit:
            self._producer.commit_transaction(30)
        else:
            self._producer.abort_transaction(30)
        for line in lines:
            self._note({**line, "phase": "ok" if commit else "fail"})

    def _note(self, line: dict[str, Any]) -> None:
        with self._history.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def event(number: int) -> Write:
    """A good record of an append."""
    return (EVENTS, number % 2, None, json.dumps({"id": number, "text": f"event {number}"}))


def state(number: int, seq: int | None, *, elsewhere: bool = False) -> Write:
    """A good record of an upsert: key and order; ``elsewhere`` is the key's other partition."""
    value = {"id": number, "value": f"{number} at {seq}", "seq": seq}
    return (STATE, (number + elsewhere) % 2, str(number), json.dumps(value))


def tombstone(number: int, *, elsewhere: bool = False) -> Write:
    """A record that deletes a key."""
    return (STATE, (number + elsewhere) % 2, str(number), None)


def poison(topic: str, partition: int, value: str | None) -> Write:
    """A record that is neither row nor tombstone."""
    return (topic, partition, "poison", value)


EVENTFUL: tuple[Sequence[Write], ...] = (
    [event(number) for number in range(24)],
    [state(number, 10) for number in range(10)],
    [poison(EVENTS, 0, '{"id": 1, "te'), poison(EVENTS, 1, None), poison(EVENTS, 1, "")],
    # Text after the object: whether that is a record is the decoder's matter, not the checker's.
    [poison(EVENTS, 0, '{"id": 50, "text": "tail"} and more')],
    [poison(STATE, 0, '{"id": "six"}'), poison(STATE, 1, '{"seq": 1}')],
    [event(number) for number in range(24, 40)],
    [state(1, 12), state(1, 11), state(2, 9), tombstone(3), state(4, 20), state(4, 21)],
    [tombstone(5), state(5, 1), tombstone(77), state(6, 10), state(7, 30), state(8, None)],
    # Keys that change partitions: deleted here, written there, in one batch and in two.
    [state(10, 5, elsewhere=True), state(11, 5), state(12, 5), state(12, 4, elsewhere=True)],
    [tombstone(10), state(11, 6, elsewhere=True), tombstone(11), tombstone(9, elsewhere=True)],
    [state(9, 2, elsewhere=True), state(9, 3), tombstone(12, elsewhere=True), state(13, 1)],
)
LAST: tuple[Sequence[Write], ...] = (
    [event(number) for number in range(40, 52)],
    [state(number, 40) for number in (0, 1, 2, 8)],
)

ABORTED = (event(900), event(901), state(92, 5), state(93, 5))
