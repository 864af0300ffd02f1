"""The producer: intent and ack of every record go to a synced history.

``python -m tests.faults.campaign.producer SERVERS HISTORY`` takes one line of JSON per order,
``{"seed", "events", "accounts"}`` (how many records) and ``shops`` (topics that get some events,
too), and answers when they are in Kafka.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

KEYS = 400
PARTITIONS = 3
OF_A_SHOP = 50
LARGE, LARGE_EVERY = 20_000, 1_500
GROUP = 120
"""Records of one transaction, and of one write to the history."""

Record = tuple[str, str, str | None, str | None]  # op, topic, key, value


class History:
    """The producer's notes: appended to and synced, group by group."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", encoding="utf-8")

    def note(self, lines: list[dict[str, Any]], phase: str) -> None:
        self._file.writelines(json.dumps({**line, "phase": phase}) + "\n" for line in lines)
        self._file.flush()
        os.fsync(self._file.fileno())


def body(letter: str, number: int) -> str:
    """The text of a record. Now and then it makes the record too large for an Arrow batch that
    Spark does not measure: then the batch is evaluated again.
    """
    return f"{letter}{number}{'x' * LARGE if number % LARGE_EVERY == 0 else ''}"


def events(dice: random.Random, number: int, topic: str) -> Record:
    """An event, or something that is none."""
    if dice.random() < 0.03:
        return "poison", topic, None, dice.choice(POISON)
    value = {"id": number, "seq": number, "body": body("e", number)}
    return "append", topic, None, json.dumps(value)


def accounts(dice: random.Random, number: int, last: str) -> Record:
    """A change of an account, a deletion, the same key again, or something that is none."""
    key = last if dice.random() < 0.03 else str(dice.randrange(KEYS))
    chance = dice.random()
    if chance < 0.04:
        return "poison", "accounts", key, dice.choice(POISON[1:])
    if chance < 0.12:
        return "delete", "accounts", key, None
    value = {"k": int(key), "seq": number, "body": body("a", number)}
    return "upsert", "accounts", key, json.dumps(value)


POISON = ("", '{"id": 1, "seq": "x"', "[]", '{"k": "no number", "id": "no number"}', "null")


def records(dice: random.Random, first: int, order: dict[str, Any]) -> Iterator[Record]:
    """What one order asks for, events and accounts mixed."""
    kinds = ["events"] * order["events"] + ["accounts"] * order["accounts"]
    kinds += [topic for topic in order.get("shops", ()) for _ in range(OF_A_SHOP)]
    dice.shuffle(kinds)
    last = "0"
    for number, kind in enumerate(kinds, first):
        made = accounts(dice, number, last) if kind == "accounts" else events(dice, number, kind)
        last = made[2] or last
        yield made


class Writer:
    """Writes groups of records, each in a transaction that is committed or, rarely, aborted."""

    def __init__(self, servers: str, history: Path) -> None:
        options = {"bootstrap.servers": servers, "transactional.id": "torture", "log_level": 2}
        self._producer = Producer({**options, "transaction.timeout.ms": 120_000})
        self._producer.init_transactions(60)
        # As many numbers as lines may have been used by one that wrote before.
        self._next = len(history.read_bytes().splitlines()) if history.exists() else 0
        self._history = History(history)

    def carry_out(self, order: dict[str, Any]) -> None:
        """Produce what an order asks for."""
        dice = random.Random(order["seed"])
        made = [*records(dice, self._next + 1, order)]
        for start in range(0, len(made), GROUP):
            self._write(made[start : start + GROUP], commit=dice.random() > 0.05)

    def _write(self, group: list[Record], *, commit: bool) -> None:
        lines: list[dict[str, Any]] = []
        for op, topic, key, value in group:
            self._next += 1
            place = (int(key) if key else self._next) % PARTITIONS
            about = {"id": self._next, "op": op, "topic": topic, "partition": place}
            lines.append({**about, "key": key, "value": value, "txn": self._next // GROUP})
        self._history.note(lines, "intent")
        self._producer.begin_transaction()
        for at, line in enumerate(lines):

            def delivered(error: KafkaError | None, message: Message, at: int = at) -> None:
                if error is None:
                    lines[at]["offset"] = message.offset()

            self._producer.produce(
                line["topic"], line["value"], line["key"], line["partition"], on_delivery=delivered
            )
        self._producer.flush(60)
        if commit:
            self._producer.commit_transaction(60)
        else:
            self._producer.abort_transaction(60)
        self._history.note(lines, "ok" if commit else "fail")


def main(servers: str, history: str) -> None:
    """Carry out orders until standard input ends."""
    writer = Writer(servers, Path(history))
    for line in sys.stdin:
        writer.carry_out(json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
