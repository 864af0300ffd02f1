"""Compares how long a record waits until it can be read, in continuous runs at a steady rate.

    python bench/latency.py [--rounds 3] [--seconds 40] [--lead 15] [--rates 2000 10000]

The latency of a record is the time from its Kafka timestamp, which the producer sets, to the time
at which the file of its commit in ``_delta_log`` was last modified. Four processes with a warm JVM
take turns; the broker and the producer are on the same cores. In a turn a new topic is filled at
the rate, and one peer reads it into a new table, batch after batch: the product with ``trigger:
0ms``, ``by_key`` (the product again, which keeps the newest row of each of 20,000 keys), ``tuned``
(Delta's streaming sink) and ``foreach_batch`` (an append written by hand), these with our session
and reader settings. The records of the first ``lead`` seconds do not count:
the query starts while they come. The first round of each rate warms up, for twice ``lead``.

Each figure is the median over the rounds of the median, or of the 99th percentile, in each. The
last line is JSON: ours divided by the better one of the last two, and ``by_key`` divided by ours.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from append import PARTITIONS, check
from bids import bid
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import Record, create_topic, produce

ROLES = ("ours", "by_key", "tuned", "foreach_batch")
_BY_KEY = {"mode": "upsert", "keys": ["extra"]}
_VALUES = 20_000
_PATIENCE_S = 180
_TOO_SLOW = 0.98


@dataclass(frozen=True)
class Turn:
    """One peer reads one topic, which is filled for ``lead`` and then for ``seconds``."""

    name: str
    rate: int
    seconds: float
    lead: float

    @property
    def messages(self) -> int:
        return int(self.rate * (self.lead + self.seconds))


@dataclass(frozen=True)
class Latency:
    """Of the records of a turn, in milliseconds."""

    median: float
    p99: float


def paced(turn: Turn, values: Sequence[bytes]) -> Iterator[Record]:
    """The records of a turn, each when it is due."""
    began = time.monotonic()
    for number in range(turn.messages):
        early = number / turn.rate - (time.monotonic() - began)
        if early > 0:
            time.sleep(early)
        yield None, values[number % len(values)], number % PARTITIONS


def latencies(table: Path, turn: Turn) -> npt.NDArray[np.float64]:
    """Milliseconds from each record's timestamp to its commit, of the records that count."""
    stamps, waits, known = [], [], set[str]()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        at_ms = commit.stat().st_mtime_ns / 1e6
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" not in action:
                continue
            path, seen = action["add"]["path"], action["add"]["path"] in known
            known.add(path)
            if seen or not action["add"]["dataChange"]:
                continue  # it got a vector, or it is what compaction moved
            file = pq.ParquetFile(table / unquote(path))
            kafka = file.read(columns=["_kafka.timestamp"])["_kafka"].combine_chunks()
            stamp = pc.struct_field(kafka, "timestamp").cast(pa.timestamp("ms", "UTC"))
            stamps.append(stamp.cast(pa.int64()).to_numpy())
            waits.append(at_ms - stamps[-1])
    all_stamps, all_waits = np.concatenate(stamps), np.concatenate(waits)
    first, last = all_stamps.min(), all_stamps.max()
    rate = turn.messages / (last - first) * 1e3
    if rate < turn.rate * _TOO_SLOW:
        print(f"{turn.name}: the producer was too slow, {rate:,.0f} messages a second", flush=True)
    counted: npt.NDArray[np.float64] = all_waits[all_stamps >= first + turn.lead * 1000]
    return counted


def measured(
    peer: Peer, turn: Turn, servers: str, values: Sequence[bytes], lake: Path, *, by_key: bool
) -> Latency:
    """Let one peer read a new topic while it is filled."""
    create_topic(servers, turn.name, PARTITIONS)
    table = lake / "bronze" / "bids"
    order = {
        "servers": servers,
        "topic": turn.name,
        "table": str(table),
        "per_batch": 500_000,
        "trigger_ms": 0,
        "messages": turn.messages,
        "limit_s": turn.lead + turn.seconds + _PATIENCE_S,
        "target": _BY_KEY if by_key else {},
    }
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(peer.drain, order)
        produce(servers, turn.name, paced(turn, values))
        answer = reading.result()
    if not by_key:
        check(table, turn.messages)
    waited = latencies(table, turn)
    commits = len([*(table / "_delta_log").glob("*.json")])
    shutil.rmtree(lake)
    found = Latency(float(np.median(waited)), float(np.percentile(waited, 99)))
    cpu = answer["cpu"] / turn.messages * 1e6
    told = f"median {found.median:6.0f} ms  p99 {found.p99:6.0f} ms  {commits:4} commits"
    print(f"{turn.name:28} {told} {cpu:6.1f} CPU-s per M", flush=True)
    return found


def compared(rate: int, found: dict[str, list[Latency]]) -> dict[str, float]:
    """Print the figures of one rate; return ours divided by the better one of the others."""
    ratios: dict[str, float] = {}
    figures = {
        "median": {role: statistics.median(e.median for e in found[role]) for role in ROLES},
        "p99": {role: statistics.median(e.p99 for e in found[role]) for role in ROLES},
    }
    for role in ROLES:
        print(f"| {rate} | {role} | {figures['median'][role]:.0f} | {figures['p99'][role]:.0f} |")
    for name, each in figures.items():
        best = min(each[role] for role in ROLES[2:])
        ratios[f"{name}_ratio_{rate / 1000:g}k"] = round(each["ours"] / best, 3)
        ratios[f"{name}_by_key_{rate / 1000:g}k"] = round(each["by_key"] / each["ours"], 3)
    return ratios


def main() -> None:
    """Run the rounds of each rate; print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40, help="how long records count")
    parser.add_argument("--lead", type=float, default=15, help="how long they do not, before")
    parser.add_argument("--rates", type=int, nargs="+", default=[2_000, 10_000])
    asked = parser.parse_args()
    folder, dice = Path(tempfile.mkdtemp(prefix="rivermouth-bench-")), random.Random(7)
    values = [bid(number, dice) for number in range(_VALUES)]
    found: dict[int, dict[str, list[Latency]]] = {e: defaultdict(list) for e in asked.rates}
    with Broker(folder / "kafka") as broker:
        peers = {role: Peer("ours" if role == "by_key" else role) for role in ROLES}
        for rate in asked.rates:
            for turn in range(asked.rounds + 1):
                for role in ROLES if turn % 2 else reversed(ROLES):
                    name = f"bids-{rate}-{turn or 'warm-up'}-{role}"
                    what = Turn(name, rate, asked.seconds if turn else asked.lead, asked.lead)
                    servers = broker.bootstrap_servers
                    by_key, lake = role == "by_key", folder / name
                    latency = measured(peers[role], what, servers, values, lake, by_key=by_key)
                    if turn:
                        found[rate][role].append(latency)
        for peer in peers.values():
            peer.close()
    shutil.rmtree(folder)
    print("| messages a second | peer | median, ms | p99, ms |\n|---|---|---|---|")
    ratios: dict[str, float] = {}
    for rate in asked.rates:
        ratios |= compared(rate, found[rate])
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
