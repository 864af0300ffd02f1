"""The producer: intent and ack of every record go to a synced history."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.campaign.forms import FORMS, JSON

KEYS = 400
PARTITIONS = 3
LATE = 1_000
"""An event that is older than others may be so many numbers late."""
LARGE, LARGE_EVERY = 20_000, 1_500
GROUP = 120
"""Records of one transaction, and of one write to the history."""

Record = tuple[str, str, str | None, bytes | None]  # op, topic, key, value


def body(letter: str, number: int) -> str:
    """The text of a record. Now and then it makes the record too large for an Arrow batch that
    Spark does not measure: then the batch is evaluated again.
    """
    return f"{letter}{number}{'x' * LARGE if number % LARGE_EVERY == 0 else ''}"


def events(dice: random.Random, number: int, topic: str, form: str) -> Record:
    """An event, or something that is none."""
    if dice.random() < 0.04:
        return "poison", topic, None, dice.choice((*POISON, None))
    value = {"id": number, "seq": number, "body": body("e", number)}
    return "append", topic, None, FORMS[form].put(value)


def accounts(dice: random.Random, number: int, last: str, form: str) -> Record:
    """A change of an account, a deletion, the same key again, or something that is none."""
    key = last if dice.random() < 0.03 else str(dice.randrange(KEYS))
    chance, its = dice.random(), FORMS[form]
    if chance < 0.04:
        return "poison", "accounts", key, dice.choice(POISON[1:])
    values = {"k": int(key), "seq": number, "body": body("a", number)}
    if chance < 0.12:
        return "delete", "accounts", key, its.delete and its.delete(values)
    if its.delete is not None and chance < 0.16:  # none of these says anything new
        late = {**values, "seq": max(1, number - dice.randrange(LATE))}
        return "late", "accounts", key, dice.choice((None, its.put(late), its.delete(late)))
    return "upsert", "accounts", key, its.put(values)


POISON = (b"", b'{"id": 1, "seq": "x"', b"[]", b'{"k": "no number", "id": "no number"}', b"null")


def records(
    dice: random.Random, first: int, topics: list[str], forms: Mapping[str, str]
) -> Iterator[Record]:
    """A record for each of these topics, mixed."""
    dice.shuffle(topics)
    last = "0"
    for number, kind in enumerate(topics, first):
        form = forms.get(kind, JSON)
        if kind == "accounts":
            made = accounts(dice, number, last, form)
        else:
            made = events(dice, number, kind, form)
        last = made[2] or last
        yield made


class Writer:
    """Writes groups of records, each in a transaction that is committed or, rarely, aborted."""

    def __init__(self, servers: str, history: Path, forms: Mapping[str, str]) -> None:
        options = {"bootstrap.servers": servers, "transactional.id": "torture", "log_level": 2}
        self._producer = Producer({**options, "transaction.timeout.ms": 120_000})
        self._producer.init_transactions(60)
        # As many numbers as lines may have been used by one that wrote before.
        self._next = len(history.read_bytes().splitlines()) if history.exists() else 0
        self._history, self._forms = history, forms

    def fill(self, seed: int, counts: Mapping[str, int]) -> None:
        """Produce so many records of each topic; they are in Kafka then."""
        dice = random.Random(seed)
        topics = [topic for topic, count in counts.items() for _ in range(count)]
        made = [*records(dice, self._next + 1, topics, self._forms)]
        for start in range(0, len(made), GROUP):
            self._write(made[start : start + GROUP], commit=dice.random() > 0.05)

    def _write(self, group: list[Record], *, commit: bool) -> None:
        lines: list[dict[str, Any]] = []
        for op, topic, key, value in group:
            self._next += 1
            place = (int(key) if key else self._next) % PARTITIONS
            about = {"id": self._next, "op": op, "topic": topic, "partition": place}
            text = None if value is None else value.decode("utf-8", "surrogateescape")
            lines.append({**about, "key": key, "value": text, "txn": self._next // GROUP})
        self._note(lines, "intent")
        self._producer.begin_transaction()
        for at, (line, (_, topic, key, value)) in enumerate(zip(lines, group, strict=True)):

            def delivered(error: KafkaError | None, message: Message, at: int = at) -> None:
                if error is None:
                    lines[at]["offset"] = message.offset()

            self._producer.produce(topic, value, key, line["partition"], on_delivery=delivered)
        self._producer.flush(60)
        if commit:
            self._producer.commit_transaction(60)
        else:
            self._producer.abort_transaction(60)
        self._note(lines, "ok" if commit else "fail")

    def _note(self, lines: list[dict[str, Any]], phase: str) -> None:
        with self._history.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({**line, "phase": phase}) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
