"""What an object store costs: requests of a batch by their kind, and time at 0, 20 and 50 ms each.

    python -m bench.store [--batches 10] [--changes 5000] [--large 500000] [--rounds 3]

The store is s3proxy on this machine, behind a proxy that counts requests and lets each take so much
longer. Peers read the same topics: the product, and ``loop``, a loop in Python that writes by
delta-rs. Of the product each drain of a topic has an opening, too: that of a drain that finds
nothing is taken off. At last batches of ``large`` records are appended at 0 and at 20 ms.

The last line is JSON: ``requests`` of the product's batch beside data files, by mode, and the same
of the loop; ``ms`` of a batch by mode, peer and delay, medians; ``large``: records a second at 20
ms divided by those at 0 ms.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bids import bid
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from rivermouth.testing import create_topic, produce
from tests.stores.proxy import Proxy, Trouble, between

PARTITIONS = 4
DELAYS_MS = (0, 20, 50)
MODES: Mapping[str, Mapping[str, Any]] = {
    "append": {},
    "upsert": {"mode": "upsert", "keys": ["auction"]},
}
ENTIRE = 1 << 30


def say(text: str) -> None:
    """Tell what is going on."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Arena:
    """The servers, the peers, and the topics."""

    broker: Broker
    store: LocalS3
    proxy: Proxy
    folder: Path
    peers: Mapping[str, Peer]
    made: int = 0
    trouble: Trouble = field(default_factory=Trouble)

    def topic(self, records: int) -> str:
        """A new topic with so many bids."""
        self.made += 1
        name, servers = f"t{self.made}", self.broker.bootstrap_servers
        create_topic(servers, name, PARTITIONS)
        self.produce(name, records)
        return name

    def produce(self, topic: str, records: int) -> None:
        """Add bids."""
        dice = random.Random(records)
        values = ((None, bid(n, dice), n % PARTITIONS) for n in range(records))
        produce(self.broker.bootstrap_servers, topic, values)

    def order(self, topic: str, mode: str, peer: str, per_batch: int) -> dict[str, Any]:
        """An order to drain a topic into a table of the peer's own."""
        prefix = f"{peer}-{mode}-{topic}"
        storage = {**self.store.options, "endpoint": self.proxy.endpoint}
        options = {f"aws_{name}": value for name, value in storage.items()}
        keys = MODES[mode].get("keys")
        return {
            "servers": self.broker.bootstrap_servers,
            "topic": topic,
            "table": str(self.folder / prefix / "silver" / "bids"),
            "per_batch": per_batch,
            "target": dict(MODES[mode]),
            "where": {"warehouse": f"{self.store.address}/{prefix}", "storage": storage},
            "url": f"{self.store.address}/{prefix}/silver/bids",
            "options": {**options, "allow_http": "true"},
            **({"keys": keys} if keys else {}),
        }

    def drained(self, order: Mapping[str, Any], peer: str) -> tuple[dict[str, Any], Counter[str]]:
        """What the peer answers, and its requests."""
        before = self.proxy.set(self.trouble)
        answer = self.peers[peer].drain(order)
        return answer, (self.proxy.set(self.trouble) - before).kinds


def batches(
    arena: Arena, mode: str, peer: str, asked: argparse.Namespace
) -> tuple[float, Counter[str]]:
    """The seconds of a batch, and its requests: of a table that is there already."""
    size, number = asked.changes, asked.batches
    topic = arena.topic(size)
    order = arena.order(topic, mode, peer, size)
    if peer == "loop" and mode == "upsert":
        arena.peers[peer].drain({k: v for k, v in order.items() if k != "keys"})
    else:
        arena.peers[peer].drain(order)
    idle = arena.drained(order, peer)[1] if peer == "ours" else Counter[str]()
    begins = {"begins": [size // PARTITIONS] * PARTITIONS}
    arena.produce(topic, size * number)
    answer, found = arena.drained({**order, **begins}, peer)
    found -= idle
    return statistics.median(answer["batches"][1:]), Counter(
        {kind: round(each / number, 2) for kind, each in found.items()}
    )


def beside_data(kinds: Counter[str]) -> float:
    """Requests that are none for data files of the table."""
    return round(
        sum(n for kind, n in kinds.items() if not kind.endswith(" data") or "off" in kind), 1
    )


def large(arena: Arena, records: int, rounds: int) -> float:
    """Records a second at 20 ms divided by those at 0 ms: batches of so many, in turns."""
    ratios = list[float]()
    for turn in range(rounds + 1):
        seconds = {}
        for delay in (0, 20) if turn % 2 else (20, 0):
            arena.trouble = Trouble(delay_s=delay / 1000)
            order = arena.order(arena.topic(3 * records), "append", "ours", records)
            answer, _ = arena.drained(order, "ours")
            seconds[delay] = sum(answer["batches"])
        say(f"large {turn}: " + ", ".join(f"{d} ms {s:.2f} s" for d, s in sorted(seconds.items())))
        if turn:
            ratios.append(seconds[0] / seconds[20])
    return round(statistics.median(ratios), 2)


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--changes", type=int, default=5_000)
    parser.add_argument("--large", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    requests, ms = dict[str, Any](), dict[str, float]()
    with Broker(folder / "kafka") as broker, LocalS3() as store, between(store.port) as proxy:
        peers = {each: Peer(each, PARTITIONS) for each in ("ours", "loop")}
        arena = Arena(broker, store, proxy, folder, peers)
        for mode in MODES:
            for peer in peers:
                batches(arena, mode, peer, asked)  # a warm-up
                for delay in DELAYS_MS:
                    arena.trouble = Trouble(delay_s=delay / 1000)
                    seconds, kinds = batches(arena, mode, peer, asked)
                    name = f"{mode} {peer}"
                    ms[f"{name} {delay}"] = round(seconds * 1000)
                    requests[name] = {
                        "beside data": beside_data(kinds),
                        **dict(sorted(kinds.items())),
                    }
                    say(f"{name} at {delay} ms: {seconds * 1000:.0f} ms, {requests[name]}")
        ratio = large(arena, asked.large, asked.rounds)
        for each in peers.values():
            each.close()
    shutil.rmtree(folder)
    print(json.dumps({"requests": requests, "ms": ms, "large": ratio}))


if __name__ == "__main__":
    main()
