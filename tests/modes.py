"""The modes of writing, for the suites that run each of them. Another one joins by one line."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rivermouth.testing import Record
from tests.lake import (
    append_pipeline,
    avro_bid,
    avro_pipeline,
    bid,
    event,
    events_pipeline,
    insert_pipeline,
    order,
    sums_pipeline,
    totals_pipeline,
    upsert_pipeline,
)

PARTITIONS = 2


@dataclass(frozen=True)
class Mode:
    """A kind of pipeline, and a good record of it: by its key, a seed and a number that rises.

    ``never``: the points of the protocol that are not on its way, or where another mode is killed.
    """

    pipeline: Callable[..., dict[str, Any]]
    good: Callable[[int, int, int], bytes]
    tombstones: bool = False
    never: frozenset[str] = frozenset()

    def records(self, count: int, seed: int, *, bad: bool = True, keys: int = 30) -> list[Record]:
        """Good ones, a few ``bad`` ones, and tombstones where there are any; of a key in one
        partition.
        """
        dice = random.Random(seed)
        made: list[Record] = []
        for number in range(count):
            key = dice.randrange(keys)
            value: bytes | None = self.good(key, seed, number)
            if bad and number % 20 == 7:
                value = b'{"auction": "no number'
            elif number % 10 == 3 and self.tombstones:
                value = None
            made.append((str(key).encode(), value, key % PARTITIONS))
        return made


def _bid(key: int, seed: int, number: int) -> bytes:
    return bid(key, price=seed + number)


def _avro(key: int, seed: int, number: int) -> bytes:
    return avro_bid(key, price=seed + number)


def _event(key: int, seed: int, number: int) -> bytes:
    return event(key, f"s{seed}", number)


def _order(key: int, seed: int, number: int) -> bytes:
    return order(key, f"s{seed}", number)


_OFTEN = frozenset({"P0", "P1", "P2", "P7", "P8", "P9", "P10", "P11", "P12", "P13"})
"""Points where all that lands by key does the same: the upsert is killed there."""
_BOTH = ["key", "headers"]
MODES: Mapping[str, Mode] = {
    "append": Mode(partial(append_pipeline, metadata=_BOTH), _bid, never=frozenset({"P13"})),
    "upsert": Mode(partial(upsert_pipeline, metadata=_BOTH), _order, tombstones=True),
    "insert": Mode(insert_pipeline, _bid, never=_OFTEN),
    "aggregate": Mode(totals_pipeline, _bid, never=_OFTEN - {"P9", "P12"}),
    "sums": Mode(sums_pipeline, _bid, never=_OFTEN),
    "events": Mode(events_pipeline, _event, never=_OFTEN),
    "avro": Mode(avro_pipeline, _avro, never=_OFTEN | {"P3", "P6"}),
}
