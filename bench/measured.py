"""What the sections of ``endurance.py`` share: how much is measured, records, workers in turns."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bids import bid
from peer import Peer

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic, produce

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    short_log: int = 1_000
    long_log: int = 100_000
    log_partitions: int = 12
    per_batch: int = 500_000
    batches: int = 3
    few: int = 4
    many: int = 2_000
    verify_records: int = 10_000_000


def say(text: str) -> None:
    """Tell what is going on."""
    print(text, file=sys.stderr, flush=True)


def order(broker: Broker, topic: str, table: Path, per_batch: int) -> dict[str, Any]:
    """An order to a worker: drain the topic into the table."""
    servers = broker.bootstrap_servers
    return {"servers": servers, "topic": topic, "table": str(table), "per_batch": per_batch}


def drained(an_order: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a new worker to its only order."""
    peer = Peer("ours")
    answer = peer.drain(an_order)
    peer.close()
    return answer


def fill_topic(
    broker: Broker, topic: str, partitions: int, records: int, bad_every: int = 0
) -> None:
    """A new topic with bids, spread evenly; one in ``bad_every`` of them cannot be decoded."""
    dice = random.Random(7)
    create_topic(broker.bootstrap_servers, topic, partitions)
    values = (bid(number, dice) for number in range(records))
    produce(
        broker.bootstrap_servers,
        topic,
        (
            (None, b"{" if bad_every and n % bad_every == bad_every // 2 else value, n % partitions)
            for n, value in enumerate(values)
        ),
    )
    say(f"topic {topic}: {records:,} records in {partitions:,} partitions")


def compared(
    name: str, sizes: Sizes, broker: Broker, folder: Path, topics: tuple[str, str]
) -> float:
    """The time of a batch of the second topic divided by that of the first; a median.

    A worker drains them in turns. The first round warms up, and so does the first batch of a drain.
    """
    peer, ratios = Peer("ours", sizes.many), list[float]()
    for turn in range(sizes.rounds + 1):
        seconds: dict[str, float] = {}
        for topic in topics if turn % 2 else reversed(topics):
            table = folder / f"{topic}-{turn}" / "bronze" / "bids"
            answer = peer.drain(order(broker, topic, table, sizes.per_batch))
            seconds[topic] = statistics.median(answer["batches"][1:])
            told = " ".join(f"{each:.2f}" for each in answer["batches"])
            say(f"{name} round {turn}: {topic}, batches of {told} s, Python {answer['mb']:.0f} MB")
        ratios.append(seconds[topics[1]] / seconds[topics[0]])
    peer.close()
    say(f"{name}: {' '.join(f'{each:.2f}' for each in ratios)}; the first does not count")
    return statistics.median(ratios[1:])
