"""Compares our totals with a foreachBatch MERGE written by hand, on the same topic.

    python bench/aggregate.py [--rounds 5] [--warm-up 4] [--messages 2000000]

Two processes with a warm JVM each take turns; the broker is on the same cores. Each drain reads the
topic into a new table, whose totals are compared with those of the other. The one written by hand
has our session and reader settings, and the same aggregate; it records no offsets, keeps no bad
records and proves nothing. Both JVMs get faster for about four drains, which warm up and are not
counted. Our process also appends a row for each record to another new table. The last line is JSON,
medians of the rounds after that: our messages per second divided by theirs, ``append_ratio`` is
that divided by the append's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from bids import fill
from deltalake import DeltaTable, QueryBuilder
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic

PARTITIONS = 4
TARGET = {
    "mode": "aggregate",
    "keys": ["auction"],
    "metrics": {"n": "count()", "spent": "sum(price)", "last": "max(at)"},
}


def drained(peer: Peer, workload: dict[str, Any], folder: Path) -> tuple[float, list[Any]]:
    """The seconds of one drain into a new table, and the totals in it."""
    table = folder / peer.role / "gold" / "totals"
    seconds = peer.drain({**workload, "table": str(table)})["seconds"]
    rows = QueryBuilder().register("rows", DeltaTable(str(table)))
    found = pa.table(rows.execute("SELECT auction, n, spent, last FROM rows").read_all())
    shutil.rmtree(folder / peer.role)
    return float(seconds), sorted(found.to_pylist(), key=lambda row: int(row["auction"]))


def appended(peer: Peer, workload: dict[str, Any], folder: Path) -> float:
    """The seconds in which the product appends the records to a new table."""
    table = folder / "appended" / "bronze" / "bids"
    seconds = peer.drain({**workload, "table": str(table), "target": {}})["seconds"]
    shutil.rmtree(folder / "appended")
    return float(seconds)


def measure(
    peers: list[Peer], workload: dict[str, Any], rounds: int, folder: Path
) -> list[tuple[float, float]]:
    """Our rate divided by theirs, and by that of our append, in each round."""
    ratios: list[tuple[float, float]] = []
    for turn in range(rounds):
        seconds: dict[str, float] = {}
        totals: list[Any] = []
        for peer in peers if turn % 2 else reversed(peers):
            seconds[peer.role], found = drained(peer, workload, folder)
            if totals and totals != found:
                raise SystemExit(f"round {turn}: the two tables differ")
            totals = found
            rate = workload["messages"] / seconds[peer.role]
            print(f"round {turn} {peer.role:7} {rate:10,.0f} msg/s {len(found):,} keys", flush=True)
        of_append = appended(peers[0], workload, folder)
        print(f"round {turn} append  {workload['messages'] / of_append:10,.0f} msg/s", flush=True)
        ratios.append((seconds["by_hand"] / seconds["ours"], of_append / seconds["ours"]))
    return ratios


def main() -> None:
    """Run the rounds; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    with Broker(folder / "kafka") as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, "bids", PARTITIONS)
        fill(servers, "bids", asked.messages, PARTITIONS, asked.seed)
        workload = {
            "servers": servers,
            "topic": "bids",
            "per_batch": 500_000,
            "messages": asked.messages,
            "target": TARGET,
        }
        peers = [Peer("ours"), Peer("by_hand")]
        ratios = measure(peers, workload, asked.warm_up + asked.rounds, folder)[asked.warm_up :]
        for peer in peers:
            peer.close()
    shutil.rmtree(folder)
    theirs, appends = zip(*ratios, strict=True)
    told = {"aggregate": statistics.median(theirs), "low": min(theirs), "high": max(theirs)}
    told["append_ratio"] = statistics.median(appends)
    print(json.dumps({name: round(each, 3) for name, each in told.items()}))


if __name__ == "__main__":
    main()
