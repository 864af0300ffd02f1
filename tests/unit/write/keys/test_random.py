"""Rows by key as files against plain Python: batch by batch, over any number of tasks."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.verification.proofs.key_rules import Change
from rivermouth.verification.proofs.keyed import Latest
from rivermouth.write.files import writing
from rivermouth.write.keys import by_row
from rivermouth.write.keys.effect import LeftToSpark
from tests.unit.write.keys.world import KeyedTable, Record, Value, a_pipeline

pytestmark = pytest.mark.unit

ORDERS = [(), ("rank",), ("text", "rank"), ("text",)]
KEYS = [("id",), ("id", "name"), ("name",)]
PARTITIONS = [(), ("id",), ("rank",), ("rank", "id")]
UNTOLD = "__debezium_unavailable_value"
Key = tuple[Any, ...]


def a_random_pipeline(dice: random.Random) -> Pipeline:
    keys, by = dice.choice(KEYS), dice.choice(PARTITIONS)
    if dice.random() < 0.3:
        return a_pipeline(*keys, mode="insert", partition_by=by)
    order_by, tombstones = dice.choice(ORDERS), dice.random() < 0.6
    events = dice.random() < 0.4
    stay = events and not tombstones and dice.random() < 0.5
    return a_pipeline(
        *keys,
        order_by=order_by,
        tombstones=tombstones,
        events=events,
        stay=stay,
        partition_by=by,
    )


class Topic:
    """Random records, with holes between their offsets."""

    def __init__(self, dice: random.Random, pipeline: Pipeline) -> None:
        self._dice, self._pipeline = dice, pipeline
        self._ends: dict[int, int] = defaultdict(int)

    def record(self) -> Record:
        dice, partition = self._dice, self._dice.randrange(3)
        offset = self._ends[partition]
        self._ends[partition] += dice.choice([1, 1, 3])
        named = {"id": dice.randrange(6), "name": dice.choice(["a", "bb"])}
        key = {each: named[each] for each in self._pipeline.target.keys}
        source = self._pipeline.source
        if (source.key or source.envelope) and dice.random() < 0.2:
            return Record(partition, offset, key, None)
        text = dice.choice([None, "", "x", "same 8 bA", "same 8 bB"])
        if "text" in self._pipeline.kept and dice.random() < 0.4:
            text = UNTOLD
        value = {**named, "rank": dice.choice([None, 1, 2]), "text": text}
        gone = source.envelope is not None and dice.random() < 0.3
        return Record(partition, offset, key, value, gone)


class Model:
    """The rows as the docs say."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._target, self._deletes = pipeline.target, pipeline.source.key is not None
        self._stay = not pipeline.events_delete
        self.rows: dict[Key, Record] = {}
        self.texts: dict[Key, str | None] = {}

    def take(self, records: Sequence[Record]) -> None:
        of_key: dict[Key, list[Record]] = defaultdict(list)
        for each in sorted(records, key=lambda each: (each.partition, each.offset)):
            of_key[tuple(each.key[name] for name in self._target.keys)].append(each)
        for key, same in of_key.items():
            if self._target.mode == "insert":
                self.rows.setdefault(key, same[0])
                self.texts[key] = (self.rows[key].value or {})["text"]
            else:
                self._latest(key, same)
        self.texts = {key: text for key, text in self.texts.items() if key in self.rows}

    def _latest(self, key: Key, same: Sequence[Record]) -> None:
        dead = (each for each in same if each.value is None and self._deletes)
        last = {each.partition: each.offset for each in dead}
        alive = [e for e in same if e.value is not None and e.offset > last.get(e.partition, -1)]
        alive = [e for e in alive if not self._is_bad(e)]
        newest = max(alive, key=self._rank, default=None)
        old = self.rows.get(key)
        if newest is None:
            if last:
                self.rows.pop(key, None)
            return
        ordered = bool(self._target.order_by)
        if old is None or last or not ordered or self._rank(newest) > self._rank(old):
            self.texts[key] = self._text(key, newest, alive, None if last else old)
            self.rows[key] = newest
            if newest.gone and not self._stay:
                del self.rows[key]

    def _text(
        self, key: Key, newest: Record, alive: Sequence[Record], old: Record | None
    ) -> str | None:
        """That of the newest row, or that of the newest row before it that tells it."""
        ordered = bool(self._target.order_by)
        found: str | None = UNTOLD
        if old is not None:
            found = self.texts[key]
        if old is not None and ordered:
            alive = [each for each in alive if self._rank(each) > self._rank(old)]
        for each in sorted(alive, key=self._rank):
            text = (each.value or {})["text"]
            goes = each.gone and not self._stay
            found = UNTOLD if goes else found if text == UNTOLD and not each.gone else text
        return found

    def _is_bad(self, record: Record) -> bool:
        """Whether it is a deletion that does not tell its place in the order."""
        value: Value = record.value or {}
        return record.gone and None in [value[each] for each in self._target.order_by]

    def _rank(self, record: Record) -> tuple[Any, ...]:
        value: Value = record.value or {}
        named = [value[each] for each in self._target.order_by]
        return *((each is not None, each) for each in named), record.partition, record.offset


class OfVerify:
    """The rows as the rule of ``verify`` has them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._target, self._source = pipeline.target, pipeline.source
        self._changes: dict[Key, list[Change]] = defaultdict(list)
        self._removes = pipeline.events_delete

    def take(self, batch: int, records: Sequence[Record]) -> None:
        for each in records:
            value: Value = each.value or {}
            order = tuple(value.get(name) for name in self._target.order_by)
            if (each.value is None and self._source.key is None) or (each.gone and None in order):
                continue
            key = tuple(each.key[name] for name in self._target.keys)
            text = None if each.value is None else json.dumps(value["text"]).encode()
            place = ("t", each.partition), each.offset
            goes = each.gone and self._removes
            self._changes[key].append(Change(batch, *place, order, 0, text, (), goes))

    def texts(self) -> dict[Key, str | None]:
        """The text of each key: of its row, or of the newest row before it that tells it."""
        rule, texts = Latest(ordered=bool(self._target.order_by)), dict[Key, str | None]()
        for key, changes in self._changes.items():
            found = rule.expected(changes, 0, certain=True)
            if found.row is not None:
                every = (json.loads(each.value or b"") for each in (found.row, *found.before))
                texts[key] = next((each for each in every if each != UNTOLD), UNTOLD)
        return texts


@pytest.mark.short(("seed",), {(n,) for n in range(12)})
@pytest.mark.parametrize("seed", range(48))
def test_rows_by_key_are_those_of_a_plain_fold(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_RECORDS", 7)  # so that tasks fold several times
    dice = random.Random(seed)
    pipeline = a_random_pipeline(dice)
    table, topic = KeyedTable(tmp_path / "t", pipeline), Topic(dice, pipeline)
    model, of_verify = Model(pipeline), OfVerify(pipeline)
    for number in range(8):
        records = [topic.record() for _ in range(dice.randrange(40))]
        tasks: list[list[Record]] = [[] for _ in range(dice.randrange(1, 4))]
        for each in records:
            tasks[each.partition % len(tasks)].append(each)
        table.land(*(sorted(e, key=lambda each: (each.partition, each.offset)) for e in tasks))
        model.take(records)
        of_verify.take(number, records)
        expected = {key: (each.partition, each.offset) for key, each in model.rows.items()}
        assert table.state() == expected, pipeline.target
        texts = {tuple(e[n] for n in pipeline.target.keys): e["text"] for e in table.rows()}
        assert texts == model.texts, pipeline.target
        if pipeline.target.mode == "upsert":
            assert texts == of_verify.texts(), pipeline.target
        if dice.random() < 0.2:
            table.restart()


def test_what_is_too_large_for_the_driver_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = KeyedTable(tmp_path / "t", a_pipeline("id", events=True))
    value = {"id": 1, "name": "a", "rank": 1, "text": "x"}
    table.land([Record(0, 0, {"id": 1}, value)])
    untold = [Record(0, 1, {"id": 1}, {**value, "text": UNTOLD})]
    monkeypatch.setattr(by_row, "FILLED_BYTES", 0)
    with pytest.raises(LeftToSpark):
        table.land(untold)
    monkeypatch.undo()
    table.land(untold)
    assert [each["text"] for each in table.rows()] == ["x"]
