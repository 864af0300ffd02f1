"""Compares upserts into a large table: as it is, with deletion vectors, and clustered by its key.

    python bench/upsert.py [--rows 4000000] [--changes 10000] [--batches 8] [--near]

Three tables get the same rows, in a random order, each with a key of its own. One of them is
clustered then (``CLUSTER BY``, ``OPTIMIZE FULL``). In turns they get batches of changes to random
keys, or, with ``--near``, to random keys of a hundredth of all: another one in each batch. Without
deletion vectors a MERGE writes each file again that holds one of the keys; with them it marks the
old rows. Then all are read whole, by ``rivermouth sql``. Progress is told on standard error. The
last line is JSON: seconds and CPU-seconds of a batch of the plain table, divided by those of each
of the others, medians; and the seconds of their reads, divided by those of the plain one.
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

from rivermouth.config import load as config_of
from rivermouth.local.broker import Broker
from rivermouth.local.session import ending, start_session
from rivermouth.operate.sql import query
from rivermouth.testing import create_topic, produce

PARTITIONS, LOADED_AT_ONCE, READS = 4, 500_000, 5
PROPERTY = "delta.enableDeletionVectors"
TOPIC, PLAIN, CLUSTERED = "changes", "plain", "clustered"
KINDS = {PLAIN: "false", "vectors": "true", CLUSTERED: "false"}
OTHERS = ("vectors", CLUSTERED)
PART = 100
"""With ``--near`` a batch changes keys of so small a part of all."""


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
    config, seconds = config_of(folder / kind / "rivermouth.yml"), list[float]()
    for _ in range(READS):
        began = time.monotonic()
        found = query(config, "SELECT count(*), sum(price), max(url) FROM silver.rows").rows()
        seconds.append(time.monotonic() - began)
    return min(seconds), found


def cluster(folder: Path) -> None:
    """Cluster the rows of a table that was loaded without."""
    table = f"delta.`{folder / CLUSTERED / 'silver' / 'rows'}`"
    session = start_session(folder / "session")
    with ending(session):
        session.sql(f"ALTER TABLE {table} CLUSTER BY (auction)")
        session.sql(f"OPTIMIZE {table} FULL")


def load(broker: Broker, asked: argparse.Namespace, folder: Path, peer: Peer) -> None:
    """Let all tables have all rows, in the same random order."""
    keys = [*range(asked.rows)]
    random.Random(asked.seed).shuffle(keys)
    add(broker.bootstrap_servers, ((key, 0) for key in keys))
    for kind, load_all in orders(broker, folder, LOADED_AT_ONCE).items():
        say(f"{asked.rows:,} rows {kind}: {peer.drain(load_all)['seconds']:.1f} s")
    cluster(folder)


def measure(broker: Broker, asked: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Load the tables, change them in turns, read them."""
    dice, servers, peer = random.Random(asked.seed), broker.bootstrap_servers, Peer("ours")
    create_topic(servers, TOPIC, PARTITIONS)
    load(broker, asked, folder, peer)
    spent: dict[str, list[tuple[float, float]]] = {each: [] for each in KINDS}
    width = asked.rows // PART if asked.near else asked.rows
    for turn in range(asked.batches + 1):
        first = dice.randrange(asked.rows - width + 1)
        add(servers, ((first + dice.randrange(width), turn) for _ in range(asked.changes)))
        small = orders(broker, folder, asked.changes)
        for kind in KINDS if turn % 2 else reversed(KINDS):
            found = peer.drain(small[kind])
            spent[kind].append((found["seconds"], found["cpu"]))
            say(f"batch {turn} {kind:9} {found['seconds']:.2f} s, {found['cpu']:.1f} CPU-s")
    peer.close()
    return {**ratios(spent), **reads(folder)}


def ratios(spent: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Of the seconds and CPU-seconds of batches, of which the first one warms up."""
    found: dict[str, float] = {}
    for kind in OTHERS:
        pairs = [*zip(spent[PLAIN], spent[kind], strict=True)][1:]
        for at, what in enumerate(("seconds", "cpu")):
            found[f"{kind}_{what}"] = statistics.median(a[at] / b[at] for a, b in pairs)
    return found


def reads(folder: Path) -> dict[str, float]:
    """Of the seconds that reading a whole table takes."""
    found = {kind: read(folder, kind) for kind in KINDS}
    if len({str(rows) for _, rows in found.values()}) > 1:
        raise SystemExit(f"the tables differ: {found}")
    say(", ".join(f"read {kind} {seconds:.2f} s" for kind, (seconds, _) in found.items()))
    plain, _ = found[PLAIN]
    return {f"{kind}_read": found[kind][0] / plain for kind in OTHERS}


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--near", action="store_true")
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    with Broker(folder / "kafka") as broker:
        found = measure(broker, asked, folder)
    shutil.rmtree(folder)
    print(json.dumps({name: round(ratio, 2) for name, ratio in found.items()}))


if __name__ == "__main__":
    main()
