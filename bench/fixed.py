"""What a batch costs that has one record, and a trigger that has none.

    python bench/fixed.py [--rounds 5] [--batches 40] [--seconds 30] [--trigger-ms 200]

One process with a warm session. In a round the product reads a new topic in a continuous run with
``trigger: 0ms``, one record in each batch. The time of a batch is that from commit to commit: it
has Spark's work between batches, the guards, the plan, the decoding and the commit. Rows of the
offsets table are gathered for a second and written by another thread, as in each run; that takes
its share of the cores meanwhile. Then Spark appends one row to a Delta table, as often. The first
quarter of each does not count, and neither does the first round. ``one_record`` is the median of
a batch divided by that of an append, the median over the rounds. ``one_by_key`` is the same of an
upsert, divided by that of the product's append. ``one_sent`` is the same of a pipeline that sends
each record to a topic: with its ledger committed by the driver, divided by that with ``commit:
spark``.

Then a pipeline that has read its topic to the end runs for ``seconds``, with a trigger every
``trigger-ms``. ``nothing_cpu_ms`` is what process and JVM use then for each trigger, in
milliseconds, the median of six parts of that time. It has what the session uses for itself, which
is printed, too. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bids import fill
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic

_PATIENCE_S = 300


def order_of(servers: str, topic: str, records: int, lake: Path) -> dict[str, Any]:
    """An order to read a new topic with so many records, in batches of one."""
    create_topic(servers, topic)
    fill(servers, topic, records, 1, 7)
    return {
        "servers": servers,
        "topic": topic,
        "table": str(lake / "bronze" / "bids"),
        "per_batch": 1,
        "messages": records,
        "trigger_ms": 0,
        "limit_s": _PATIENCE_S,
    }


Order = Callable[[str, str, Path], dict[str, Any]]
"""What a peer is asked for: by the name of a contestant, that of its topic, and its folder."""


def compared(
    peer: Peer, what: str, pair: tuple[str, str], order: Order, rounds: int, folder: Path
) -> float:
    """The time of a batch of the first of a pair divided by that of the second."""
    ratios: list[float] = []
    for turn in range(rounds + 1):
        medians: dict[str, float] = {}
        for name in pair if turn % 2 else pair[::-1]:
            lake = folder / f"{name}-{turn}"
            asked = order(name, lake.name, lake)
            found = peer.drain(asked)["batches"]
            if len(found) != asked["messages"]:
                raise SystemExit(f"{name}: {len(found)} batches, not {asked['messages']}")
            medians[name] = statistics.median(found[len(found) // 4 :])
            shutil.rmtree(lake)
        told = "  ".join(f"{name} {each * 1000:.0f} ms" for name, each in sorted(medians.items()))
        print(f"{f'round {turn}' if turn else 'warm-up'}: {told}", flush=True)
        if turn:
            ratios.append(medians[pair[0]] / medians[pair[1]])
    print(f"{what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return statistics.median(ratios)


def one_record(peer: Peer, servers: str, rounds: int, batches: int, folder: Path) -> float:
    """The time of a batch of one record divided by that of an append of one row."""

    def order(role: str, topic: str, lake: Path) -> dict[str, Any]:
        return {**order_of(servers, topic, batches, lake), "role": role}

    return compared(peer, "one record", ("ours", "one_row"), order, rounds, folder)


def one_by_key(peer: Peer, servers: str, rounds: int, batches: int, folder: Path) -> float:
    """The time of a batch of one record by key divided by that of an append."""

    def order(mode: str, topic: str, lake: Path) -> dict[str, Any]:
        target = {"mode": "upsert", "keys": ["auction"]} if mode == "by_key" else {}
        return {**order_of(servers, topic, batches, lake), "role": "ours", "target": target}

    return compared(peer, "one by key", ("by_key", "append"), order, rounds, folder)


def one_sent(peer: Peer, servers: str, rounds: int, batches: int, folder: Path) -> float:
    """The time of a batch that sends one record divided by that with ``commit: spark``."""

    def order(way: str, topic: str, lake: Path) -> dict[str, Any]:
        create_topic(servers, f"{topic}-out")
        commit = "spark" if way == "sent_spark" else "auto"
        sink = {"kafka": f"{topic}-out", "commit": commit}
        return {**order_of(servers, topic, batches, lake), "role": "ours", "sink": sink}

    return compared(peer, "one sent", ("sent", "sent_spark"), order, rounds, folder)


def nothing(peer: Peer, servers: str, seconds: float, trigger_ms: int, folder: Path) -> float:
    """The CPU milliseconds of a trigger without records."""
    order = {**order_of(servers, "nothing", 1, folder / "nothing"), "trigger_ms": trigger_ms}
    found = peer.drain({**order, "role": "nothing", "seconds": seconds})
    triggers = seconds * 1000 / trigger_ms / len(found["used"])
    used, session = (statistics.median(found[e]) / triggers * 1000 for e in ("used", "session"))
    told = " ".join(f"{part / triggers * 1000:.1f}" for part in found["used"])
    print(f"nothing to read, the parts: {told}")
    print(f"nothing to read: {used:.1f} CPU-ms a trigger, of these the session {session:.1f}")
    return float(used)


def main() -> None:
    """Measure all; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--trigger-ms", type=int, default=200)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    with Broker(folder / "kafka") as broker:
        servers, peer = broker.bootstrap_servers, Peer("ours")
        ratio = one_record(peer, servers, asked.rounds, asked.batches, folder)
        keyed = one_by_key(peer, servers, asked.rounds, asked.batches, folder)
        sent = one_sent(peer, servers, asked.rounds, asked.batches, folder)
        cpu_ms = nothing(peer, servers, asked.seconds, asked.trigger_ms, folder)
        peer.close()
    shutil.rmtree(folder)
    told = {"one_record": ratio, "one_by_key": keyed, "one_sent": sent}
    told = {name: round(each, 3) for name, each in told.items()}
    print(json.dumps({**told, "nothing_cpu_ms": round(cpu_ms, 2)}))


if __name__ == "__main__":
    main()
