"""Compares upserts of random keys into a large table with and without deletion vectors.

    python bench/upsert.py [--rows 4000000] [--changes 10000] [--batches 8]

Two tables get the same rows, each with a key of its own, and then in turns batches of changes to
random keys. Without deletion vectors a MERGE writes each file again that holds one of the keys;
with them it marks the old rows. Then both are read whole, by ``rivermouth sql``. Progress is told
on standard error. The last line is JSON: seconds and CPU-seconds of a batch without, divided by
those with deletion vectors, medians; and the seconds of the read with, divided by those without.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measured import order, say
from peer import Peer

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.sql import query
from rivermouth.testing import create_topic, produce

PARTITIONS, LOADED_AT_ONCE, READS = 4, 500_000, 5
PROPERTY = "delta.enableDeletionVectors"
TOPIC, KINDS = "changes", {"without": "false", "with": "true"}


def change(key: int, price: int) -> bytes:
    """One change of the row ``key``, as UTF-8 JSON of about 180 bytes."""
    return (
        f'{{"auction":{key},"bidder":{key % 1009},"price":{price},"channel":"channel-{key % 97}",'
        f'"url":"https://www.nexmark.example/{key:x}/item.htm?query=1",'
        f'"at":"2026-03-01T00:00:00.000Z","extra":"{key * 2654435761 % (1 << 64):036x}"}}'
    ).encode()


def add(servers: str, changes: Iterable[tuple[int, int]]) -> None:
    """Produce changes, spread by key."""
    produce(servers, TOPIC, ((None, change(*each), each[0] % PARTITIONS) for each in changes))


def orders(broker: Broker, folder: Path, per_batch: int) -> dict[str, dict[str, Any]]:
    """What the worker is to do for each of the tables."""
    told = {}
    for kind, value in KINDS.items():
        target = {"mode": "upsert", "keys": ["auction"], "properties": {PROPERTY: value}}
        into = order(broker, TOPIC, folder / kind / "silver" / "rows", per_batch)
        told[kind] = {**into, "target": target}
    return told


def read(folder: Path, kind: str) -> tuple[float, Any]:
    """The seconds of the fastest read, and what it found."""
    config, seconds = load(folder / kind / "rivermouth.yml"), list[float]()
    for _ in range(READS):
        began = time.monotonic()
        found = query(config, "SELECT count(*), sum(price), max(url) FROM silver.rows").rows()
        seconds.append(time.monotonic() - began)
    return min(seconds), found


def measure(broker: Broker, asked: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Load both tables, change them in turns, read them."""
    dice, servers, peer = random.Random(asked.seed), broker.bootstrap_servers, Peer("ours")
    create_topic(servers, TOPIC, PARTITIONS)
    add(servers, ((key, 0) for key in range(asked.rows)))
    for kind, load_all in orders(broker, folder, LOADED_AT_ONCE).items():
        say(f"{asked.rows:,} rows {kind}: {peer.drain(load_all)['seconds']:.1f} s")
    spent: dict[str, list[tuple[float, float]]] = {each: [] for each in KINDS}
    for turn in range(asked.batches + 1):
        add(servers, ((dice.randrange(asked.rows), turn) for _ in range(asked.changes)))
        small = orders(broker, folder, asked.changes)
        for kind in KINDS if turn % 2 else reversed(KINDS):
            found = peer.drain(small[kind])
            spent[kind].append((found["seconds"], found["cpu"]))
            say(f"batch {turn} {kind:7} {found['seconds']:.2f} s, {found['cpu']:.1f} CPU-s")
    peer.close()
    (slow, of_all), (fast, of_marked) = (read(folder, each) for each in KINDS)
    if of_all != of_marked:
        raise SystemExit(f"the tables differ: {of_all} and {of_marked}")
    pairs = [*zip(*spent.values(), strict=True)][1:]  # the first one warms up
    seconds, cpu = (statistics.median(a[at] / b[at] for a, b in pairs) for at in (0, 1))
    say(f"read without {slow:.2f} s, with {fast:.2f} s")
    return {"seconds": seconds, "cpu": cpu, "read": fast / slow}


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    with Broker(folder / "kafka") as broker:
        found = measure(broker, asked, folder)
    shutil.rmtree(folder)
    print(json.dumps({name: round(ratio, 2) for name, ratio in found.items()}))


if __name__ == "__main__":
    main()
