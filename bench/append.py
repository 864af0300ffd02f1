"""Compares our append with Spark's own Delta sink and with a plain loop, on the same topic.

    python bench/append.py [--rounds 5] [--messages 2000000] [--small 400000]

Four warm processes take turns; the broker is on the same cores. All but ``loop`` have a JVM. Each
drain reads the topic into a new table. Then the rows are counted and checked for duplicates.
CPU-seconds are those of the process and its JVM, without the broker. The last line is JSON: our
messages per second divided by theirs, medians over the rounds.

kafka-delta-ingest has no row: its program is not built here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bids import fill
from deltalake import DeltaTable
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic

ROLES = ("ours", "tuned", "stock", "loop")
PARTITIONS = 4


def check(table: Path, messages: int) -> None:
    """Exit unless the table holds every (partition, offset) exactly once."""
    found = 0
    for partition in range(PARTITIONS):
        offsets = []
        for file in DeltaTable(str(table)).file_uris():
            columns = ["_kafka.partition", "_kafka.offset"]
            kafka = pq.ParquetFile(file).read(columns=columns)["_kafka"].combine_chunks()
            mine = pc.equal(pc.struct_field(kafka, "partition"), partition)
            offsets.append(pc.struct_field(kafka, "offset").filter(mine))
        distinct = len(pc.unique(pa.concat_arrays(offsets)))
        if distinct != sum(len(each) for each in offsets):
            raise SystemExit(f"{table}: partition {partition} holds an offset twice")
        found += distinct
    if found != messages:
        raise SystemExit(f"{table}: {found} rows, not {messages}")


def measure(
    peers: list[Peer], workload: dict[str, Any], rounds: int, folder: Path
) -> dict[str, list[dict[str, float]]]:
    """Let the peers drain the topic in turns; the first round warms up and is not counted."""
    results: dict[str, list[dict[str, float]]] = defaultdict(list)
    for turn in range(rounds + 1):
        for peer in peers if turn % 2 else reversed(peers):
            lake = folder / f"{peer.role}-{turn}"
            table = lake / "bronze" / "bids"
            result = peer.drain({**workload, "table": str(table)})
            check(table, workload["messages"])
            shutil.rmtree(lake)
            rate = workload["messages"] / result["seconds"]
            note = "warm-up" if turn == 0 else f"round {turn}"
            cpu = result["cpu"] / workload["messages"] * 1e6
            text = f"{workload['name']} {note:8} {peer.role:6} {rate:10,.0f} msg/s"
            print(f"{text} {cpu:6.1f} CPU-s per M  start-up {result['startup']:.1f} s", flush=True)
            if turn:
                results[peer.role].append(result)
    return results


def summary(
    workload: dict[str, Any], results: dict[str, list[dict[str, float]]]
) -> dict[str, float]:
    """Print the medians; return our rate divided by that of each peer, paired by round."""
    ratios: dict[str, float] = {}
    for role in ROLES:
        seconds = statistics.median(each["seconds"] for each in results[role])
        cpu = statistics.median(each["cpu"] for each in results[role])
        pairs = [
            theirs["seconds"] / mine["seconds"]
            for mine, theirs in zip(results["ours"], results[role], strict=True)
        ]
        rate, per_million = workload["messages"] / seconds, cpu / workload["messages"] * 1e6
        ratio, low, high = statistics.median(pairs), min(pairs), max(pairs)
        text = f"| {workload['name']} | {role} | {rate:,.0f} | {per_million:.1f} |"
        print(f"{text} {ratio:.2f} ({low:.2f} to {high:.2f}) |")
        if role != "ours":
            ratios[f"{role}_{workload['name']}"] = round(ratio, 3)
    return ratios


def main() -> None:
    """Run both workloads; print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--small", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    ratios: dict[str, float] = {}
    with Broker(folder / "kafka") as broker:
        servers = broker.bootstrap_servers
        peers = [Peer(role) for role in ROLES]
        table = [
            "| workload | peer | msg/s | CPU-s per M | ours / theirs |",
            "|---|---|---|---|---|",
        ]
        measured = []
        for name, per_batch, messages in (
            ("500k", 500_000, asked.messages),
            ("20k", 20_000, asked.small),
        ):
            topic = f"bids-{name}"
            create_topic(servers, topic, PARTITIONS)
            size = fill(servers, topic, messages, PARTITIONS, asked.seed)
            print(f"{topic}: {messages:,} messages, {size / messages:.0f} B each", flush=True)
            workload = {
                "name": name,
                "servers": servers,
                "topic": topic,
                "per_batch": per_batch,
                "messages": messages,
            }
            measured.append((workload, measure(peers, workload, asked.rounds, folder)))
        print("\n".join(table))
        for workload, results in measured:
            ratios.update(summary(workload, results))
        for peer in peers:
            peer.close()
    shutil.rmtree(folder)
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
