"""``python -m tests.faults.sinks --records N --seed S``: kills of drivers that send.

Three pipelines read one topic: to a topic at least once, to a topic at most once, and to a function
that stores rows and offsets in one transaction. Each round produces records, starts a driver and
kills it. In some rounds Spark commits the entries of a pipeline, because the configuration or the
table of its ledger asks for that; else the driver does so by itself. At the end a driver is left to
finish, all that was sent is compared with what was produced, and what the drivers traced with the
model. Prints its seed first, a line per ten rounds, and last a line of JSON. Exit code 1 where a
promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verify import verify
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.ways import Alteration, Told, alter
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE
from tests.faults.striking import LATE, MOMENT, arrival, strike, strike_when
from tests.kafka.test_sinks import calling, read_back, sending
from tests.lake import Lake, bid
from tests.processes import said_by

TOPIC, PARTITIONS = "sent", 3
LEAST, MOST, FUNCTION = "least", "most", "function"
NAMES = (LEAST, MOST, FUNCTION)
ARRIVED = "arrived"
POINTS = ("P3", "P14", "P15", "P17", "P18", "P6", "P7", MOMENT, ARRIVED, ARRIVED)
EFFECTS = {LEAST: AT_LEAST_ONCE, MOST: AT_MOST_ONCE, FUNCTION: AT_LEAST_ONCE}
MANY = 20
"""After so many kills, entries have been committed by the driver and through Spark."""
PER_ROUND, LIMIT = 1000, 2000
Proof = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What one pipeline's sink holds, and what is wrong with it."""

    repeated: int = 0
    lost: int = 0
    wrong: tuple[str, ...] = ()


def judge(
    good: dict[str, int], found: Iterable[tuple[str, int]], proof: Proof, kills: int, most: bool
) -> Outcome:
    """Compare the ids and auctions in a topic with the good records, and with what verify says."""
    times: Counter[str] = Counter()
    wrong = [] if proof["ok"] else [f"verify: {proof['problems']}"]
    for name, auction in found:
        times[name] += 1
        if good.get(name) != auction:
            wrong.append(f"{name} holds auction {auction}, not {good.get(name)}")
    repeated = times.total() - len(times)
    lost = len(good.keys() - times.keys())
    told = proof["not_checked"].get("records_not_in_the_sink", 0)
    if repeated != proof["repeated"]:
        wrong.append(f"{repeated} repeats, and verify says {proof['repeated']}")
    if lost != told:
        wrong.append(f"{lost} are lost, and verify says {told}")
    if (repeated if most else lost) > 0:
        wrong.append(f"{repeated} repeats and {lost} lost break the promise")
    if max(repeated, lost) > kills * LIMIT:
        wrong.append(f"{repeated} repeats and {lost} lost are more than {kills} batches")
    return Outcome(repeated, lost, tuple(wrong))


def judge_function(good: dict[str, int], stored: Counter[int], proof: Proof) -> Outcome:
    """Compare the auctions in the database with the good records: each once."""
    wrong = [] if proof["ok"] else [f"verify: {proof['problems']}"]
    expected = Counter(good.values())
    lost, repeated = (expected - stored).total(), (stored - expected).total()
    if lost or repeated:
        wrong.append(f"{lost} are lost and {repeated} are there again")
    return Outcome(repeated, lost, tuple(wrong))


@dataclass
class World:
    """A lake under drivers that are killed, and what was produced."""

    lake: Lake
    dice: random.Random
    good: dict[str, int] = field(default_factory=dict)
    """The auction of each good record, by topic, partition and offset."""
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    kills: Counter[str] = field(default_factory=Counter)

    def configure(self, **source: Any) -> None:
        """Write the file, with more settings for each source."""
        pipelines = {
            LEAST: sending(TOPIC, f"{TOPIC}-{LEAST}"),
            MOST: sending(TOPIC, f"{TOPIC}-{MOST}", delivery="at-most-once"),
            FUNCTION: calling(TOPIC, "tests.kafka.sqlite_sink:store"),
        }
        for each in pipelines.values():
            each["source"].update(source)
            each["target"]["commit"] = self.dice.choice(("auto", "auto", "auto", "spark"))
        self.lake.configure(**pipelines)

    def ledgers(self) -> dict[str, Path]:
        """The table of each pipeline's ledger."""
        return {each: self.lake.path(f"rivermouth.ledger_{each}") for each in NAMES}

    def produce(self) -> None:
        """The records of one round: bids, each with an auction of its own, and a few bad ones."""
        made = []
        for _ in range(PER_ROUND):
            partition = self.dice.randrange(PARTITIONS)
            bad = self.dice.random() < 0.01
            auction = len(self.good)
            if not bad:
                self.good[f"{TOPIC}/{partition}/{self.ends[partition]}"] = auction
            self.ends[partition] += 1
            made.append((None, b"{oops" if bad else bid(auction), partition))
        self.lake.produce(TOPIC, made)

    def kill(self) -> None:
        """Start a driver and kill it; before that, who commits the entries may change."""
        self.configure(max_offsets_per_trigger=LIMIT)
        for each in self.ledgers().values():
            alter(each, asks=self.dice.random() < 0.25)
        point = self.dice.choice(POINTS)
        if point == ARRIVED:
            sink = f"{TOPIC}-{self.dice.choice((LEAST, MOST))}"
            seen = arrival(self.lake.servers, sink, PARTITIONS)
            seen = Alteration(self.ledgers()[self.dice.choice(NAMES)]).beside(seen)
            self.kills[ARRIVED if strike_when(self.lake, NAMES, seen) else LATE] += 1
        else:
            self.kills[strike(self.lake, NAMES, point, self.dice)] += 1

    @property
    def killed(self) -> int:
        """How many drivers were killed."""
        return self.kills.total() - self.kills[LATE]

    def finish(self) -> dict[str, Outcome]:
        """Let a driver come to its end, and judge what was sent."""
        self.configure()
        with self.lake.driver(*NAMES) as driver:
            said = said_by(driver)
        assert driver.returncode == 0, said
        told = verify(load(self.lake.file)).as_dict()["pipelines"]
        proofs = {each["name"]: each for each in told}
        outcomes = {
            name: judge(
                {f"{name}/{place}": auction for place, auction in self.good.items()},
                sent(self.lake.servers, f"{TOPIC}-{name}"),
                proofs[name],
                self.killed,
                name == MOST,
            )
            for name in (LEAST, MOST)
        }
        return {**outcomes, FUNCTION: judge_function(self.good, stored(), proofs[FUNCTION])}

    @property
    def trace(self) -> Path:
        """What the drivers tell of their steps."""
        return self.lake.folder / "trace.jsonl"

    def off_the_paths(self) -> list[str]:
        """What the drivers did that the model does not."""
        return [
            each
            for name, table in self.ledgers().items()
            for each in Paths(self.trace, {name: table}, EFFECTS[name]).check()
        ]


def sent(servers: str, topic: str) -> Iterable[tuple[str, int]]:
    """Of each record of a topic its id, and the auction that it holds."""
    for each in read_back(servers, topic, PARTITIONS):
        yield dict(each.headers())["rm-id"].decode(), json.loads(each.value())["auction"]


def stored() -> Counter[int]:
    """How often the function's database holds each auction."""
    with closing(sqlite3.connect(os.environ["BIDS_DB"])) as database:
        return Counter(each for (each,) in database.execute("SELECT auction FROM bids"))


def campaign(folder: Path, records: int, seed: int) -> dict[str, Any]:
    """Rounds until so many records were produced; what the last line says."""
    os.environ["BIDS_DB"] = str(folder / "bids.db")
    os.environ["RIVERMOUTH_TRACE"] = str(folder / "trace.jsonl")
    began = time.monotonic()
    with Broker(folder / "kafka") as broker:
        lake = Lake(folder, broker.bootstrap_servers)
        for name in (TOPIC, f"{TOPIC}-{LEAST}", f"{TOPIC}-{MOST}"):
            lake.topic(name, PARTITIONS)
        world = World(lake, random.Random(seed))
        while sum(world.ends) < records:
            world.produce()
            world.kill()
            if world.kills.total() % 10 == 0:
                print(f"{world.killed} kills, {sum(world.ends)} records", flush=True)
        outcomes = world.finish()
    violations = [f"{name}: {each}" for name, found in outcomes.items() for each in found.wrong]
    violations += world.off_the_paths()
    commits = Told(world.trace, world.ledgers()).count()
    if world.killed > MANY and not all(commits[each] for each in ("files", "spark")):
        violations.append(f"only one way was gone: {commits}")
    for each in violations[:50]:
        print(f"VIOLATION {each}", flush=True)
    counts = {name: {"repeated": o.repeated, "lost": o.lost} for name, o in outcomes.items()}
    told = {"seed": seed, "records": sum(world.ends), "good": len(world.good)}
    seconds = round(time.monotonic() - began)
    ended = {"kills": dict(world.kills), "commits": commits, **counts, "seconds": seconds}
    return {**told, **ended, "violations": len(violations)}


def main() -> int:
    """Run a campaign to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-sinks-"))
    told = campaign(folder, asked.records, asked.seed)
    print(json.dumps(told))
    if not told["violations"]:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if told["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
