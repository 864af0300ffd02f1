"""``python -m tests.faults.sinks --records N --seed S``: kills of drivers that send.

Three pipelines read one topic: to a topic at least once, to a topic at most once, and to a function
that stores rows and offsets in one transaction. Each round produces records, starts a driver and
kills it. In some rounds Spark commits the entries of a pipeline, because the configuration or the
table of its ledger asks for that; else the driver does so by itself. At the end a driver is left to
finish, all that was sent is compared with what was produced, and what the drivers traced with the
model. Prints a line per ten rounds. Exit code 1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import verify
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.ways import CommitWays, alter, altering
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE
from tests.faults.seeded import command
from tests.faults.striking import MOMENT, KilledDrivers, arrival
from tests.kafka.test_sinks import calling, read_back, sending
from tests.lake import Lake, bid

TOPIC, PARTITIONS = "sent", 3
LEAST, MOST, FUNCTION = "least", "most", "function"
EFFECTS = {LEAST: AT_LEAST_ONCE, MOST: AT_MOST_ONCE, FUNCTION: AT_LEAST_ONCE}
ARRIVED = "arrived"
POINTS = ("P3", "P14", "P15", "P17", "P18", "P6", "P7", MOMENT, ARRIVED, ARRIVED)
MANY = 20
"""After so many kills, entries have been committed by the driver and through Spark."""
PER_ROUND, LIMIT = 1000, 2000


class Outcome(NamedTuple):
    """What one pipeline's sink holds, and what is wrong with it."""

    repeated: int
    lost: int
    wrong: list[str]


def judge(
    good: Counter[Any], found: Counter[Any], proof: dict[str, Any], repeats: int, losses: int
) -> Outcome:
    """Compare what is in a sink with the good records, and with what ``verify`` says.

    ``repeats`` and ``losses`` are how many of each there may be.
    """
    repeated, lost = (found - good).total(), (good - found).total()
    wrong = [] if proof["ok"] else [f"verify: {proof['problems']}"]
    wrong += [f"{each} is no record that was sent" for each in found.keys() - good.keys()]
    verified = proof.get("repeated", 0), proof["not_checked"].get("records_not_in_the_sink", 0)
    if (repeated, lost) != verified:
        wrong.append(f"{repeated} repeats and {lost} lost, and verify says {verified}")
    if repeated > repeats or lost > losses:
        wrong.append(f"{repeated} repeats and {lost} lost, at most {repeats} and {losses} may be")
    return Outcome(repeated, lost, wrong)


@dataclass
class World(KilledDrivers):
    """What was produced, and what arrived of it."""

    names = (LEAST, MOST, FUNCTION)

    good: dict[str, int] = field(default_factory=dict)
    """The auction of each good record, by topic, partition and offset."""
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

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
        return {each: self.lake.path(f"rivermouth.ledger_{each}") for each in self.names}

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
        where, seen = self.dice.choice(POINTS), None
        if where == ARRIVED:
            sink = f"{TOPIC}-{self.dice.choice((LEAST, MOST))}"
            seen = arrival(self.lake.servers, sink, PARTITIONS)
            seen = altering([self.ledgers()[self.dice.choice(self.names)]], seen)
        self.strike(where, seen)

    def judged(self) -> dict[str, Outcome]:
        """What was sent once a driver has come to its end."""
        self.configure()
        self.finish()
        pipelines = verify(load(self.lake.file)).as_dict()["pipelines"]
        proofs = {each["name"]: each for each in pipelines}
        killed = self.killed * LIMIT
        may = {LEAST: (killed, 0), MOST: (0, killed)}
        outcomes = {FUNCTION: judge(Counter(self.good.values()), stored(), proofs[FUNCTION], 0, 0)}
        for name, most in may.items():
            good = Counter((f"{name}/{place}", auction) for place, auction in self.good.items())
            found = Counter(sent(self.lake.servers, f"{TOPIC}-{name}"))
            outcomes[name] = judge(good, found, proofs[name], *most)
        return outcomes

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


def sent(servers: str, topic: str) -> Iterator[tuple[str, int]]:
    """Of each record of a topic its id, and the auction that it holds."""
    for each in read_back(servers, topic, PARTITIONS):
        yield dict(each.headers())["rm-id"].decode(), json.loads(each.value())["auction"]


def stored() -> Counter[int]:
    """How often the function's database holds each auction."""
    with closing(sqlite3.connect(os.environ["BIDS_DB"])) as database:
        return Counter(each for (each,) in database.execute("SELECT auction FROM bids"))


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Rounds until so many records were produced."""
    os.environ["BIDS_DB"] = str(folder / "bids.db")
    os.environ["RIVERMOUTH_TRACE"] = str(folder / "trace.jsonl")
    with Broker(folder / "kafka") as broker:
        world = World(Lake(folder, broker.bootstrap_servers), random.Random(asked.seed))
        for name in (TOPIC, f"{TOPIC}-{LEAST}", f"{TOPIC}-{MOST}"):
            world.lake.topic(name, PARTITIONS)
        while sum(world.ends) < asked.records:
            world.produce()
            world.kill()
            if world.kills.total() % 10 == 0:
                print(f"{world.killed} kills, {sum(world.ends)} records", flush=True)
        outcomes = world.judged()
    violations = [f"{name}: {each}" for name, found in outcomes.items() for each in found.wrong]
    violations += world.off_the_paths()
    commits = CommitWays(world.trace, world.ledgers()).count()
    if world.killed > MANY and not all(commits[each] for each in ("files", "spark")):
        violations.append(f"only one way was gone: {commits}")
    counts = {name: {"repeated": o.repeated, "lost": o.lost} for name, o in outcomes.items()}
    facts = {"records": sum(world.ends), "good": len(world.good), "kills": dict(world.kills)}
    return {**facts, "commits": commits, **counts}, violations


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=100_000)
    sys.exit(command(campaign, options))
