"""Compares batches of changes by key: small tables and large ones, appends, and what others do.

    python bench/upsert.py [--rounds 3] [--changes 10000] [--batches 5] [--drain 2000000]

Tables of 1, 4 and 16 million rows get batches of changes to random keys, in turns, warm; nothing
else uses the cores but the broker. A batch lasts from commit to commit, of ours from Kafka to the
visible commit. The first batch of each turn does not count. The peers are

- ``merge`` and ``merge_dv``: a MERGE in foreachBatch with our session and reader settings, into 4
  million rows, without deletion vectors and with them;
- ``loop``: a loop in Python, with ``merge`` of delta-rs, into 16 million rows;
- ``append``: the product again, which adds a row for each of the same changes to 4 million keys.

Then all tables of 4 million rows are compared, and both of 16 million. At last our upsert and our
append read ``drain`` changes to 4 million keys, half a million a batch.

Progress is told on standard error. The last line is JSON, medians over the rounds: ``rows_ratio``
is a batch into 16 million rows divided by one into 1 million; ``append_ratio`` one into 4 million
divided by one of the append; ``merge``, ``merge_dv`` and ``loop`` are a batch of theirs divided by
ours; ``append_ratio_drain`` is our upsert's records a second divided by our append's.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes import AT_ONCE, KEYED, change, compare, generate
from measured import say
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic, produce

PARTITIONS, MILLION = 4, 1_000_000
SIZES = {"1m": MILLION, "4m": 4 * MILLION, "16m": 16 * MILLION}


@dataclass(frozen=True)
class Contestant:
    """A table, who writes it, and how many million keys its changes are of."""

    name: str
    role: str
    size: str
    target: Mapping[str, Any]

    def table(self, folder: Path) -> Path:
        """Its path."""
        return folder / self.name / "silver" / "rows"


CONTESTANTS = (
    Contestant("upsert_1m", "ours", "1m", KEYED),
    Contestant("upsert_4m", "ours", "4m", KEYED),
    Contestant("upsert_16m", "ours", "16m", KEYED),
    Contestant("append", "ours", "4m", {}),
    Contestant("merge", "merge_by_hand", "4m", {}),
    Contestant("merge_dv", "merge_by_hand", "4m", {}),
    Contestant("loop", "loop", "16m", {}),
)


class Arena:
    """All contestants' tables and processes, and the topics that hold their changes."""

    def __init__(self, broker: Broker, folder: Path, asked: argparse.Namespace) -> None:
        self._broker, self._folder, self._asked = broker, folder, asked
        self._dice, self._produced = random.Random(asked.seed), dict.fromkeys(SIZES, 0)
        self._ends = {each: [0] * PARTITIONS for each in SIZES}
        self._begins = dict(self._ends)
        self._peers = {each: Peer(each) for each in ("ours", "merge_by_hand", "loop")}

    def prepare(self) -> None:
        """Make the tables, with rows of a generator."""
        for size in SIZES:
            create_topic(self._broker.bootstrap_servers, size, PARTITIONS)
        for each in CONTESTANTS:
            if each.role == "ours":
                self.drain(each, AT_ONCE)  # makes the table
            if each.target or each.role != "ours":
                vectors = each.name == "merge_dv"
                generate(each.table(self._folder), SIZES[each.size], vectors=vectors)
                say(f"{each.name}: {SIZES[each.size]:,} rows")

    def produce(self, size: str, changes: int) -> None:
        """Add changes of random keys to a topic."""
        first = self._produced[size]
        keys = [self._dice.randrange(SIZES[size]) for _ in range(changes)]
        values = ((None, change(key, first + n), key % PARTITIONS) for n, key in enumerate(keys))
        produce(self._broker.bootstrap_servers, size, values)
        self._produced[size] += changes
        counted = Counter(key % PARTITIONS for key in keys)
        self._begins[size] = self._ends[size]
        self._ends[size] = [end + counted[n] for n, end in enumerate(self._ends[size])]

    def drain(self, each: Contestant, per_batch: int) -> dict[str, Any]:
        """Let one read its topic to the end."""
        order = {
            "servers": self._broker.bootstrap_servers,
            "topic": each.size,
            "table": str(each.table(self._folder)),
            "per_batch": per_batch,
            "target": dict(each.target),
            "begins": self._begins[each.size],  # of the loop, which keeps no offsets
            "keys": ["auction"],
        }
        return self._peers[each.role].drain(order)

    def turn(self, number: int) -> dict[str, float]:
        """The seconds of a batch of each contestant."""
        asked, found = self._asked, dict[str, float]()
        for size in SIZES:
            self.produce(size, asked.changes * asked.batches)
        for each in CONTESTANTS if number % 2 else reversed(CONTESTANTS):
            answer = self.drain(each, asked.changes)
            batches = answer["batches"][1:]
            found[each.name] = statistics.median(batches)
            told = " ".join(f"{batch:.3f}" for batch in batches)
            say(f"round {number} {each.name:10} {told} s, {answer['cpu']:.1f} CPU-s")
        return found

    def drains(self) -> Iterator[float]:
        """Our upsert's records a second divided by our append's, of each round."""
        upsert, append = (e for e in CONTESTANTS if e.name in ("upsert_4m", "append"))
        for number in range(self._asked.rounds + 1):
            self.produce("4m", self._asked.drain)
            seconds = {}
            for each in (upsert, append) if number % 2 else (append, upsert):
                seconds[each.name] = self.drain(each, AT_ONCE)["seconds"]
            rates = {name: self._asked.drain / each for name, each in seconds.items()}
            say(f"drain {number}: " + ", ".join(f"{n} {e:,.0f} a second" for n, e in rates.items()))
            if number:
                yield rates["upsert_4m"] / rates["append"]

    def check(self) -> None:
        """Compare tables that had the same changes."""
        tables = {each.name: each.table(self._folder) for each in CONTESTANTS}
        compare([tables[each] for each in ("upsert_4m", "merge", "merge_dv")])
        compare([tables[each] for each in ("upsert_16m", "loop")])
        say("the tables have the same rows")

    def close(self) -> None:
        """End all processes."""
        for each in self._peers.values():
            each.close()


RATIOS = {
    "rows_ratio": ("upsert_16m", "upsert_1m"),
    "append_ratio": ("upsert_4m", "append"),
    "merge": ("merge", "upsert_4m"),
    "merge_dv": ("merge_dv", "upsert_4m"),
    "loop": ("loop", "upsert_16m"),
}


def told(ratios: Mapping[str, list[float]]) -> dict[str, float]:
    """Print the range of each; return the medians."""
    for name, each in ratios.items():
        median, low, high = statistics.median(each), min(each), max(each)
        print(f"{name}: {median:.2f} ({low:.2f} to {high:.2f})")
    return {name: round(statistics.median(each), 2) for name, each in ratios.items()}


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--drain", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=7)
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    with Broker(folder / "kafka") as broker:
        arena = Arena(broker, folder, asked)
        arena.prepare()
        rounds = [arena.turn(number) for number in range(asked.rounds + 1)][1:]
        arena.check()
        ratios = {name: [e[a] / e[b] for e in rounds] for name, (a, b) in RATIOS.items()}
        ratios["append_ratio_drain"] = [*arena.drains()]
        arena.close()
    shutil.rmtree(folder)
    print(json.dumps(told(ratios)))


if __name__ == "__main__":
    main()
