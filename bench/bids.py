"""The benchmark's records: NEXMark-like auction bids of about 230 bytes of JSON."""

from __future__ import annotations

import random

from rivermouth.testing import produce

COLUMNS = (
    ("auction", "BIGINT"),
    ("bidder", "BIGINT"),
    ("price", "BIGINT"),
    ("channel", "STRING"),
    ("url", "STRING"),
    ("at", "TIMESTAMP"),
    ("extra", "STRING"),
)
DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", *(f"channel-{i}" for i in range(96)))


def bid(number: int, dice: random.Random) -> bytes:
    """The ``number``-th bid, as UTF-8 JSON."""
    auction = 1000 + (number // 100 if dice.random() < 0.5 else dice.randrange(1 + number // 20))
    channel = dice.choice(_CHANNELS)
    extra = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=36))
    second = number // 1000
    at = f"2026-03-{1 + second // 86400:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}"
    return (
        f'{{"auction":{auction},"bidder":{dice.randrange(1_000_000)},'
        f'"price":{dice.randrange(100, 10_000_000)},"channel":"{channel}",'
        f'"url":"https://www.nexmark.example/{extra[:8]}/item.htm?query=1&id={number % 99991}",'
        f'"at":"{at}:{second % 60:02d}.{number % 1000:03d}Z","extra":"{extra}"}}'
    ).encode()


def fill(servers: str, topic: str, messages: int, partitions: int, seed: int) -> int:
    """Produce ``messages`` bids, spread evenly; return the bytes of their values."""
    dice = random.Random(seed)
    total = 0
    for start in range(0, messages, 100_000):
        chunk = [bid(number, dice) for number in range(start, min(start + 100_000, messages))]
        total += sum(len(each) for each in chunk)
        produce(servers, topic, [(None, each, i % partitions) for i, each in enumerate(chunk)])
    return total
