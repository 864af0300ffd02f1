"""``python -m tests.faults.upserts --changes N --keys K --batches B --seed S``: random changes.

Two pipelines upsert one table, each from a topic of its own, in one run; about every twentieth
change is a tombstone, many are late or of equal order. Between the runs somebody runs OPTIMIZE, or
rewrites what is deleted; goes back to an older version by RESTORE, which both pipelines then
accept; or damages what the index of keys has on the disk. After each run the table is read at one
of its versions, by Spark, delta-rs and, where ``--readers`` names their folder, DuckDB and polars.
All must find the rows of a plain fold: it takes the records that each entry names, one by one, in
the order of the commits. At the end delta-rs reads these versions again, and ``verify`` proves the
table. Exit code 1 where any row was another one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.local.session import start_session
from rivermouth.verification import verify
from tests.faults.checker.at_length import at_length
from tests.faults.checker.log import Commit, Log
from tests.faults.outcomes import refusal, went_well
from tests.faults.readers import Reader, readers
from tests.faults.seeded import command
from tests.lake import Lake

NAMES, PARTITIONS, ROUNDS = ("upserts_east", "upserts_west"), 3, 20
SCHEMA = "id BIGINT, seen BIGINT, price BIGINT"
COLUMNS = "id, seen, price"
PLACE = pa.schema([("id", pa.int64()), ("seen", pa.int64()), ("price", pa.int64())])
DEEDS = ("nothing", "optimize", "purge", "restore", "damage", "restore")


class Change(NamedTuple):
    """A record: a new row of a key, or its tombstone."""

    key: int
    at: int | None
    price: int | None


class Standing(NamedTuple):
    """The row of a key. They are ordered as rows are, but for what has no value in ``at``."""

    valued: bool
    at: int
    topic: str
    partition: int
    offset: int
    price: int


@dataclass
class Fold:
    """The rows of the table by key after some of its commits."""

    records: Mapping[str, list[list[Change]]]
    rows: dict[int, Standing] = field(default_factory=dict)

    def copy(self) -> Fold:
        """The same, which changes apart."""
        return Fold(self.records, dict(self.rows))

    def take(self, entry: Mapping[str, Any]) -> None:
        """What a commit with that entry, at length, does."""
        for topic, partition, begin, end in entry["ranges"]:
            for offset in range(begin, end):
                self._apply(topic, partition, offset)

    def _apply(self, topic: str, partition: int, offset: int) -> None:
        key, at, price = self.records[topic][partition][offset]
        if price is None:
            self.rows.pop(key, None)
            return
        row = Standing(at is not None, at or 0, topic, partition, offset, price)
        if row > self.rows.get(key, ()):
            self.rows[key] = row

    def table(self) -> pa.Table:
        """The rows in the order of their keys."""
        keys = sorted(self.rows)
        rows = [self.rows[each] for each in keys]
        columns = [keys, [e.at if e.valued else None for e in rows], [e.price for e in rows]]
        return pa.table([pa.array(each, pa.int64()) for each in columns], PLACE)


@dataclass
class World:
    """The lake, what was produced, and what the table has to be."""

    lake: Lake
    spark: SparkSession
    dice: random.Random
    asked: argparse.Namespace
    readers: Mapping[str, Reader]
    records: dict[str, list[list[Change]]] = field(
        default_factory=lambda: {each: [[] for _ in range(PARTITIONS)] for each in NAMES}
    )
    seen: dict[int, Fold] = field(default_factory=dict)
    """What the versions have to be that were read, and the newest one."""
    deeds: Counter[str] = field(default_factory=Counter)
    batches: int = 0

    def __post_init__(self) -> None:
        self.log, self.fold = Log(self.table), Fold(self.records)
        for each in NAMES:
            self.lake.topic(each, PARTITIONS)
        rate = max(self.asked.changes // self.asked.batches, 1)
        self.lake.configure(**{each: _pipeline(each, rate) for each in NAMES})

    @property
    def table(self) -> Path:
        """Its folder."""
        return self.lake.path("silver.rows")

    def produce(self, number: int) -> None:
        """So many changes of each topic."""
        for topic in NAMES:
            made = []
            for _ in range(number):
                change = self._change()
                place = change.key % PARTITIONS
                self.records[topic][place].append(change)
                value = None if change.price is None else json.dumps(_told(change)).encode()
                made.append((str(change.key).encode(), value, place))
            self.lake.produce(topic, made)

    def _change(self) -> Change:
        dice, keys = self.dice, self.asked.keys
        key = dice.randrange(keys if dice.random() < 0.8 else max(keys // 100, 1))
        if dice.random() < 0.05:
            return Change(key, None, None)
        now = sum(map(len, self.records[NAMES[0]])) // 200
        late = dice.randrange(now + 1) if dice.random() < 0.2 else now
        return Change(key, None if dice.random() < 0.01 else late, dice.randrange(1 << 40))

    def run(self) -> list[str]:
        """Read all that was produced, and look at a version of the table: what is wrong with it."""
        went_well(self.lake.run(self.spark, *NAMES))
        new = self.log.update()
        looked = self.dice.choice([each.version for each in new])
        for each in new:
            self._take(each)
            if each.version in (looked, self.log.version):
                self.seen[each.version] = self.fold.copy()
        return [line for name in self.readers for line in self.differs(name, looked)]

    def _take(self, commit: Commit) -> None:
        if commit.operation == "RESTORE":
            self.fold = self.seen[int(commit.parameters["version"])].copy()
        elif commit.metadata is not None and "rivermouth" in (said := json.loads(commit.metadata)):
            entry = at_length(said)
            self.batches += bool(entry["ranges"])
            self.fold.take(entry)

    def differs(self, reader: str, version: int) -> Iterator[str]:
        """How the table at a version that was looked at is not what it has to be."""
        found = self.readers[reader](self.table, version, COLUMNS).cast(PLACE).sort_by("id")
        wanted = self.seen[version].table()
        if not found.equals(wanted):
            rows = zip(found.to_pylist(), wanted.to_pylist(), strict=False)
            first = next((each for each in rows if each[0] != each[1]), None)
            yield (
                f"version {version}, {reader}: {found.num_rows} rows, not {wanted.num_rows}; "
                f"the first that differ: {first}"
            )

    def disturb(self, deed: str) -> None:
        """Do one of the things that others do to a table."""
        getattr(self, f"_{deed}")()
        self.deeds[deed] += 1

    def _nothing(self) -> None:
        """Let it be."""

    def _optimize(self) -> None:
        self.spark.sql(f"OPTIMIZE delta.`{self.table}`")

    def _purge(self) -> None:
        self.spark.sql(f"REORG TABLE delta.`{self.table}` APPLY (PURGE)")

    def _restore(self) -> None:
        """Go back to a version that was read, and accept that."""
        version = self.dice.choice(sorted(self.seen)[:-1])
        self.spark.sql(f"RESTORE TABLE delta.`{self.table}` TO VERSION AS OF {version}")
        for name in NAMES:
            refused = refusal(self.lake.run(self.spark, name))
            assert refused.code == "RM411", refused
            words = ("resume", name, "--accept", "restore")
            done = self.lake.command(*words, spark=self.spark)
            assert done.returncode == 0, done.stderr

    def _damage(self) -> None:
        """Change some bytes of each file that indexes have on the disk."""
        for file in self.lake.scratch.glob("keys/*/*"):
            content = bytearray(file.read_bytes())
            for _ in range(3 if content else 0):
                content[self.dice.randrange(len(content))] ^= 1 << self.dice.randrange(8)
            file.unlink()
            file.write_bytes(content)

    def proved(self) -> list[str]:
        """What is wrong at the end: with old versions, and with what ``verify`` proves."""
        found = [line for each in self.seen for line in self.differs("delta-rs", each)]
        proofs = verify(load(self.lake.file)).pipelines
        return found + [line for each in proofs for line in each.problems]


def _told(change: Change) -> dict[str, Any]:
    return {"id": change.key, "seen": change.at, "price": change.price}


def _pipeline(topic: str, rate: int) -> dict[str, Any]:
    return {
        "source": {
            "topics": [topic],
            "format": "json",
            "key": "string",
            "max_offsets_per_trigger": rate,
        },
        "schema": SCHEMA,
        "target": {"table": "silver.rows", "mode": "upsert", "keys": ["id"], "order_by": ["seen"]},
    }


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Twenty rounds, or up to the first one after which a row was another one."""
    with Broker(folder / "kafka") as broker:
        spark = start_session(folder / "session")
        lake = Lake(folder, broker.bootstrap_servers)
        world = World(lake, spark, random.Random(asked.seed), asked, readers(spark, asked.readers))
        wrong = played(world)
    facts = {
        "changes": sum(len(part) for each in world.records.values() for part in each),
        "batches": world.batches,
        "versions": world.log.version,
        "deeds": dict(world.deeds),
        "readers": [*world.readers],
    }
    return facts, wrong


def played(world: World) -> list[str]:
    """All rounds in a world; returns what was wrong."""
    each = world.asked.changes // ROUNDS // len(NAMES)
    for number in range(ROUNDS):
        world.produce(each)
        wrong = world.run()
        print(f"round {number + 1}: version {world.log.version}, {len(wrong)} wrong", flush=True)
        if wrong:
            return wrong
        if number < ROUNDS - 1:
            world.disturb(world.dice.choice(DEEDS))
    return world.proved()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--changes", type=int, default=1_000_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--batches", type=int, default=1000)
    options.add_argument("--readers", type=Path)
    sys.exit(command(campaign, options))
