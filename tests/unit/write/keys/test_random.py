"""Rows by key as files against plain Python: batch by batch, over any number of tasks."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.write.files import writing
from tests.unit.write.keys.world import KeyedTable, Record, Value, a_pipeline

pytestmark = pytest.mark.unit

ORDERS = [(), ("rank",), ("text", "rank"), ("text",)]
KEYS = [("id",), ("id", "name"), ("name",)]
PARTITIONS = [(), ("id",), ("rank",), ("rank", "id")]
Key = tuple[Any, ...]


def a_random_pipeline(dice: random.Random) -> Pipeline:
    keys, by = dice.choice(KEYS), dice.choice(PARTITIONS)
    if dice.random() < 0.3:
        return a_pipeline(*keys, mode="insert", partition_by=by)
    order_by, tombstones = dice.choice(ORDERS), dice.random() < 0.6
    events = dice.random() < 0.4
    return a_pipeline(
        *keys, order_by=order_by, tombstones=tombstones, events=events, partition_by=by
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
        value = {**named, "rank": dice.choice([None, 1, 2]), "text": text}
        gone = source.envelope is not None and dice.random() < 0.3
        return Record(partition, offset, key, value, gone)


class Model:
    """The rows as the docs say."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._target, self._events = pipeline.target, pipeline.source.envelope is not None
        self.rows: dict[Key, Record] = {}

    def take(self, records: Sequence[Record]) -> None:
        of_key: dict[Key, list[Record]] = defaultdict(list)
        for each in sorted(records, key=lambda each: (each.partition, each.offset)):
            of_key[tuple(each.key[name] for name in self._target.keys)].append(each)
        for key, same in of_key.items():
            if self._target.mode == "insert":
                self.rows.setdefault(key, same[0])
            else:
                self._latest(key, same)

    def _latest(self, key: Key, same: Sequence[Record]) -> None:
        dead = (each for each in same if each.value is None and not self._events)
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
            self.rows[key] = newest
            if newest.gone:
                del self.rows[key]

    def _is_bad(self, record: Record) -> bool:
        """Whether it is a deletion that does not tell its place in the order."""
        value: Value = record.value or {}
        return record.gone and None in [value[each] for each in self._target.order_by]

    def _rank(self, record: Record) -> tuple[Any, ...]:
        value: Value = record.value or {}
        named = [value[each] for each in self._target.order_by]
        return *((each is not None, each) for each in named), record.partition, record.offset


@pytest.mark.parametrize("seed", range(32))
def test_rows_by_key_are_those_of_a_plain_fold(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_RECORDS", 7)  # so that tasks fold several times
    dice = random.Random(seed)
    pipeline = a_random_pipeline(dice)
    table, topic, model = KeyedTable(tmp_path / "t", pipeline), Topic(dice, pipeline), None
    model = Model(pipeline)
    for _ in range(8):
        records = [topic.record() for _ in range(dice.randrange(40))]
        tasks: list[list[Record]] = [[] for _ in range(dice.randrange(1, 4))]
        for each in records:
            tasks[each.partition % len(tasks)].append(each)
        table.land(*(sorted(e, key=lambda each: (each.partition, each.offset)) for e in tasks))
        model.take(records)
        expected = {key: (each.partition, each.offset) for key, each in model.rows.items()}
        assert table.state() == expected, pipeline.target
        if dice.random() < 0.2:
            table.restart()
