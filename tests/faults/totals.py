"""``python -m tests.faults.totals --kills N --seed S``: kills of drivers that keep totals.

Three pipelines read one topic: totals by key that Spark folds, totals that tasks fold, and the
first row of each key. Each round produces records, in half of the rounds also bad ones, starts a
driver and kills it, at a named point or at any moment. Then the tables are compared with plain
Python over the records below the position of their newest entry. Prints its seed first, a line per
ten rounds, and last a line of JSON. Exit code 1 where a table was wrong. SIGINT ends it after the
kill that it is at: what was done until then is proved and told.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verify import verify
from tests.faults.striking import LATE, MOMENT, strike
from tests.lake import Lake, bid, insert_pipeline, sums_pipeline, totals_pipeline
from tests.processes import said_by

TOPIC, PARTITIONS, KEYS, PER_ROUND = "totals", 3, 50, 300
POINTS = ("P11", "P9", "P8", "P7", "P6", "P12", "P3", "P2", "P1", "P10", "P0")
GOLD, SUMS, FIRST = f"gold.{TOPIC}", f"sums.{TOPIC}", f"first.{TOPIC}"
TABLES = (GOLD, SUMS, FIRST)
NAMES = ("totals", "sums", "firsts")
Row = tuple[Any, ...]


@dataclass
class World:
    """A lake under drivers that are killed, and each record that was produced, by partition."""

    lake: Lake
    dice: random.Random
    records: list[list[tuple[int, int] | None]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    kills: Counter[str] = field(default_factory=Counter)
    stood: dict[int, Row] = field(default_factory=dict)
    """The first rows at the last look: none of them may change, whatever comes."""

    @property
    def killed(self) -> int:
        """How many drivers were killed before they came to their end."""
        return self.kills.total() - self.kills[LATE]

    def produce(self) -> None:
        """The records of one round: bids, and in half of the rounds what cannot be decoded."""
        made, rate = [], self.dice.choice((0, 0.02))
        for _ in range(PER_ROUND):
            partition = self.dice.randrange(PARTITIONS)
            told = (self.dice.randrange(KEYS), self.dice.randrange(1000))
            bad = self.dice.random() < rate
            self.records[partition].append(None if bad else told)
            made.append((None, b"{oops" if bad else bid(*told), partition))
        self.lake.produce(TOPIC, made)

    def kill(self) -> None:
        """Start a driver and kill it; one that comes to its end before is left to it."""
        point = self.dice.choice((*POINTS, MOMENT, MOMENT, MOMENT))
        self.kills[strike(self.lake, NAMES, point, self.dice)] += 1

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

    def finish(self) -> list[str]:
        """Let a driver come to its end, without a limit, and ask ``verify``; what is wrong."""
        self.configure()
        with self.lake.driver(*NAMES) as driver:
            said = said_by(driver)
        proof = verify(load(self.lake.file))
        wrong = [] if driver.returncode == 0 else [f"the last driver failed: {said[-500:]}"]
        ends = [len(each) for each in self.records]
        behind = [table for table in TABLES if self.positions(table) != ends]
        return [
            *wrong,
            *(line for each in proof.pipelines for line in each.problems),
            *(f"{table} did not read to the end" for table in behind),
        ]

    def positions(self, table: str) -> list[int]:
        """Up to which offset the newest entry of a table has read each partition."""
        if not DeltaTable.is_deltatable(str(self.lake.path(table))):
            return [0] * PARTITIONS
        for commit in DeltaTable(str(self.lake.path(table))).history():
            entry = json.loads(commit.get("userMetadata") or "{}")
            if "rivermouth" in entry:
                told = entry["topics"].get(TOPIC)
                found = dict(zip(_numbers(told["partitions"]), _spread(told), strict=True))
                return [found.get(each, 0) for each in range(PARTITIONS)]
        return [0] * PARTITIONS

    def wrong(self) -> list[str]:
        """How the tables differ from plain Python over what they have read."""
        found: list[str] = []
        for table, expected in ((GOLD, self.totals), (SUMS, self.totals), (FIRST, self.firsts)):
            position = self.positions(table)
            if any(position):
                wanted, rows = expected(position), self.rows(table)
                if rows != wanted:
                    keys = [each for each in {*rows, *wanted} if rows.get(each) != wanted.get(each)]
                    found += [
                        f"{table} {key}: {rows.get(key)}, not {wanted.get(key)}" for key in keys
                    ]
        return [*found, *self.changed()]

    def changed(self) -> list[str]:
        """First rows that are no longer what they were at the last look."""
        before, self.stood = self.stood, self.rows(FIRST) if any(self.positions(FIRST)) else {}
        return [
            f"{FIRST} {key}: {self.stood.get(key)}, and {row} was the first"
            for key, row in before.items()
            if self.stood.get(key) != row
        ]

    def rows(self, table: str) -> dict[int, Row]:
        """Of each key what is compared."""
        held = self.lake.rows(table)
        named = (
            (row["auction"], (row["price"],) if table == FIRST else (row["n"], row["spent"]))
            for row in held
        )
        rows = dict(named)
        assert len(rows) == len(held), f"{table}: a key twice"
        return rows

    def totals(self, position: list[int]) -> dict[int, Row]:
        """Number and sum by key."""
        by_key: dict[int, list[int]] = {}
        for records, until in zip(self.records, position, strict=True):
            for each in filter(None, records[:until]):
                by_key.setdefault(each[0], []).append(each[1])
        return {key: (len(prices), sum(prices)) for key, prices in by_key.items()}

    def firsts(self, position: list[int]) -> dict[int, Row]:
        """By key the price of the row that stands, which must be one of a record of that key."""
        held = self.rows(FIRST)
        candidates: dict[int, set[int]] = {}
        for records, until in zip(self.records, position, strict=True):
            for key, price in filter(None, records[:until]):
                candidates.setdefault(key, set()).add(price)
        return {
            key: held[key] if held.get(key, ("",))[0] in found else ("one of", found)
            for key, found in candidates.items()
        }


def _numbers(runs: list[int]) -> list[int]:
    """Partitions: the first and the last of each run."""
    return [n for at in range(0, len(runs), 2) for n in range(runs[at], runs[at + 1] + 1)]


def _spread(told: dict[str, Any]) -> list[int]:
    """The positions; a list of equal numbers may be that number alone."""
    position = told["position"]
    return (
        position if isinstance(position, list) else [position] * len(_numbers(told["partitions"]))
    )


def main() -> int:
    """Run a campaign to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    folder, began = Path(tempfile.mkdtemp(prefix="rivermouth-totals-")), time.monotonic()
    violations: list[str] = []
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    with Broker(folder / "kafka") as broker:
        lake = Lake(folder, broker.bootstrap_servers)
        lake.topic(TOPIC, PARTITIONS)
        world = World(lake, random.Random(asked.seed))
        while world.killed < asked.kills and not violations and not stop.is_set():
            world.produce()
            world.limit()
            world.kill()
            violations += world.wrong()
            if world.kills.total() % 10 == 0:
                print(f"{world.killed} kills, {len(violations)} violations", flush=True)
        violations += world.finish()
    for each in violations:
        print(f"VIOLATION {each}", flush=True)
    told = {
        "seed": asked.seed,
        "killed": world.killed,
        "at": dict(world.kills),
        "records": sum(map(len, world.records)),
        "seconds": round(time.monotonic() - began),
        "violations": len(violations),
    }
    print(json.dumps(told))
    if not violations:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
