"""What partitions cost: batches over few and over many, beside Spark's own reading of the same.

    python bench/partitions.py [--sizes 200000 20000] [--partitions 4 200 2000] [--rounds 2]
                               [--batches 12] [--least 100] [--peers ours spread bare coalesced]

The same records lie in topics with so many partitions. In one session, in turns, they are read by
``ours``: the product, an append as files;
``spread``: the product as Structured Streaming plans it, so that each batch reads all partitions;
``bare``: a query of Spark that drops the rows, in a task for each partition;
``coalesced``: the same in a task for each core, as the product reads.
All have our settings of session and reader. ``least`` is how many offsets of a partition ``ours``
reads at least, so that partitions have several turns in a small topic. Measured is the time from
the end of a batch to that of the next one, as the median of the second half of a drain. By then
there is a consumer for each partition; what the drain took beyond batches of that length is told as
``connecting``. CPU-seconds are those of the process with its JVM: they depend less on what else the
machine does. Rounds that warm up come first.

The last line is JSON, by the size of a batch: medians of the rounds, by peer and partitions, and
the ratios of most to fewest partitions, paired by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from measured import fill_topic, order, say
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.local.machine import cores

PEERS: Mapping[str, Mapping[str, Any]] = {
    "ours": {},
    "spread": {"least": 1},
    "bare": {"role": "bare", "parts": 0},
    "coalesced": {"role": "bare", "parts": cores()},
}
SETTINGS = {"log.index.size.max.bytes": "1048576"}
"""Else an index file takes 10 MB from the first record on."""
Figures = dict[tuple[str, int, str], list[float]]
"""By peer, partitions and what is measured: the figure of each round."""


def figures_of(answer: Mapping[str, Any]) -> Mapping[str, float]:
    """Those of one drain."""
    found = {}
    for what, batches in (("s", answer["batches"]), ("cpu", answer["cpus"])):
        usual = statistics.median(batches[len(batches) // 2 :])
        found |= {what: usual, f"{what} connecting": sum(batches) - usual * len(batches)}
    return found


def measured(asked: argparse.Namespace, broker: Broker, folder: Path, size: int) -> Figures:
    """Read batches of ``size`` by all peers, in turns."""
    found: Figures = defaultdict(list)
    peer = Peer("ours", max(asked.partitions))
    for partitions in asked.partitions:
        fill_topic(broker, f"t{size}-{partitions}", partitions, size * asked.batches)
    for turn in range(-asked.warm_up, asked.rounds):
        for name, partitions in product(asked.peers, asked.partitions):
            table = folder / f"{name}-{size}-{partitions}-{turn}" / "bronze" / "bids"
            told = {**order(broker, f"t{size}-{partitions}", table, size), "least": asked.least}
            answer = peer.drain({**told, "partitions": partitions, **PEERS[name]})
            figures = figures_of(answer)
            said = ", ".join(f"{what} {each:.2f}" for what, each in figures.items())
            say(f"{size:,} a batch, round {turn}: {name} over {partitions:,}: {said}")
            for what, each in figures.items() if turn >= 0 else ():
                found[name, partitions, what].append(each)
    peer.close()
    return found


def told(found: Figures, partitions: Sequence[int]) -> dict[str, Any]:
    """The figures of one size of batches."""
    few, many = min(partitions), max(partitions)
    figures: dict[str, Any] = {
        f"{name} {number} {what}": round(statistics.median(each), 3)
        for (name, number, what), each in found.items()
    }
    for name, what in sorted({(name, what) for name, _, what in found if "conn" not in what}):
        pairs = zip(found[name, few, what], found[name, many, what], strict=True)
        ratios = [most / least for least, most in pairs]
        say(f"{name}, {what}, {many:,} / {few}: {' '.join(f'{each:.2f}' for each in ratios)}")
        figures[f"{name} {what} ratio"] = round(statistics.median(ratios), 2)
    return figures


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200_000, 20_000])
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 200, 2_000])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=[*PEERS])
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--least", type=int, default=100)
    asked, figures = parser.parse_args(), {}
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as name:
        folder = Path(name)
        with Broker(folder / "kafka", settings=SETTINGS) as broker:
            for size in asked.sizes:
                figures[f"{size}"] = told(measured(asked, broker, folder, size), asked.partitions)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
