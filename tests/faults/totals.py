"""``python -m tests.faults.totals --kills N --seed S``: kills of drivers that keep totals.

Three pipelines read one topic: totals by key that Spark folds and merges; totals that tasks fold,
and the first row of each key, which both land as files. Each round produces records, in half of the
rounds also bad ones, starts a driver and kills it, at a named point or at any moment. Then the
tables are compared with plain Python over the records below the position of their newest entry.
Prints a line per ten rounds. Exit code 1 where a table was wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import verify
from tests.faults.checker.at_length import at_length
from tests.faults.seeded import command
from tests.faults.striking import MOMENT, KilledDrivers
from tests.lake import Lake, bid, insert_pipeline, sums_pipeline, totals_pipeline

TOPIC, PARTITIONS, KEYS, PER_ROUND = "totals", 3, 50, 300
OF_FILES = ("P21", "P20", "P22", "P18", "P17", "P16", "P19")
POINTS = ("P11", "P9", "P8", "P7", "P6", *OF_FILES, "P12", "P3", "P2", "P1", "P10", "P0")
GOLD, SUMS, FIRST = f"gold.{TOPIC}", f"sums.{TOPIC}", f"first.{TOPIC}"
TABLES = (GOLD, SUMS, FIRST)
Row = tuple[Any, ...]


@dataclass
class World(KilledDrivers):
    """Each record that was produced, by partition, and what was read of it."""

    names = ("totals", "sums", "firsts")

    records: list[list[tuple[int, int] | None]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    seen_first: dict[int, Row] = field(default_factory=dict)
    """The first rows at the last look: none of them may change, whatever comes."""

    def produce(self) -> None:
        """The records of one round: bids, and in half of the rounds what cannot be decoded."""
        made, rate = [], self.dice.choice((0, 0.02))
        for _ in range(PER_ROUND):
            partition = self.dice.randrange(PARTITIONS)
            record = (self.dice.randrange(KEYS), self.dice.randrange(1000))
            bad = self.dice.random() < rate
            self.records[partition].append(None if bad else record)
            made.append((None, b"{oops" if bad else bid(*record), partition))
        self.lake.produce(TOPIC, made)

    def limit(self) -> None:
        """Two batches a round; more records in each where kills have left many unread.

        A driver that is not killed reads all of them, and has little time.
        """
        read = min(sum(self.positions(table)) for table in TABLES)
        unread = sum(map(len, self.records)) - read
        self.configure(max_offsets_per_trigger=max(PER_ROUND // 2, unread // 4))

    def configure(self, **source: Any) -> None:
        """Write the file, with more settings for each source."""
        self.lake.configure(
            totals=totals_pipeline(TOPIC, **source),
            sums=sums_pipeline(TOPIC, **source),
            firsts=insert_pipeline(TOPIC, **source),
        )

    def proved(self) -> list[str]:
        """What is wrong once a driver has read all, without a limit, and ``verify`` was asked."""
        self.configure()
        self.finish()
        ends = [len(each) for each in self.records]
        behind = [table for table in TABLES if self.positions(table) != ends]
        proofs = verify(load(self.lake.file)).pipelines
        return [
            *(line for each in proofs for line in each.problems),
            *(f"{table} did not read to the end" for table in behind),
        ]

    def positions(self, table: str) -> list[int]:
        """Up to which offset the newest entry of a table has read each partition."""
        found: dict[str, int] = {}
        if DeltaTable.is_deltatable(str(self.lake.path(table))):
            history = DeltaTable(str(self.lake.path(table))).history()
            entries = (json.loads(each.get("userMetadata") or "{}") for each in history)
            newest = next((at_length(each) for each in entries if "rivermouth" in each), None)
            found = newest["position"].get(TOPIC, {}) if newest else {}
        return [found.get(str(each), 0) for each in range(PARTITIONS)]

    def wrong(self) -> list[str]:
        """How the tables differ from plain Python over what they have read."""
        found: list[str] = []
        for table, expected in ((GOLD, self.totals), (SUMS, self.totals), (FIRST, self.firsts)):
            position = self.positions(table)
            if any(position):
                wanted, rows = expected(position), self.rows(table)
                keys = [each for each in {*rows, *wanted} if rows.get(each) != wanted.get(each)]
                found += [f"{table} {key}: {rows.get(key)}, not {wanted.get(key)}" for key in keys]
        return [*found, *self.changed()]

    def changed(self) -> list[str]:
        """First rows that are no longer what they were at the last look."""
        now = self.rows(FIRST) if any(self.positions(FIRST)) else {}
        before, self.seen_first = self.seen_first, now
        return [
            f"{FIRST} {key}: {now.get(key)}, and {row} was the first"
            for key, row in before.items()
            if now.get(key) != row
        ]

    def rows(self, table: str) -> dict[int, Row]:
        """Of each key what is compared."""
        columns = ("price",) if table == FIRST else ("n", "spent")
        found = self.lake.rows(table)
        rows = {row["auction"]: tuple(row[each] for each in columns) for row in found}
        assert len(rows) == len(found), f"{table}: a key twice"
        return rows

    def prices(self, position: list[int]) -> dict[int, list[int]]:
        """Those of the good records below a position, by key."""
        by_key: dict[int, list[int]] = {}
        for records, until in zip(self.records, position, strict=True):
            for key, price in filter(None, records[:until]):
                by_key.setdefault(key, []).append(price)
        return by_key

    def totals(self, position: list[int]) -> dict[int, Row]:
        """Number and sum by key."""
        return {key: (len(each), sum(each)) for key, each in self.prices(position).items()}

    def firsts(self, position: list[int]) -> dict[int, Row]:
        """By key the price of the row that stands, which must be one of a record of that key."""
        rows, found = self.rows(FIRST), self.prices(position)
        return {
            key: rows[key] if rows.get(key, ("",))[0] in prices else ("one of", {*prices})
            for key, prices in found.items()
        }


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Rounds until so many drivers were killed, or a table was wrong."""
    violations: list[str] = []
    with Broker(folder / "kafka") as broker:
        world = World(Lake(folder, broker.bootstrap_servers), random.Random(asked.seed))
        world.lake.topic(TOPIC, PARTITIONS)
        while world.killed < asked.kills and not violations:
            world.produce()
            world.limit()
            world.strike(world.dice.choice((*POINTS, MOMENT, MOMENT, MOMENT)))
            violations += world.wrong()
            if world.kills.total() % 10 == 0:
                print(f"{world.killed} kills, {len(violations)} violations", flush=True)
        violations += world.proved()
    records = sum(map(len, world.records))
    return {"killed": world.killed, "at": dict(world.kills), "records": records}, violations


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=300)
    sys.exit(command(campaign, options))
