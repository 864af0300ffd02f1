"""The records of a soak, which fill the topics of the fleet."""

from __future__ import annotations

import random
from collections import Counter

from rivermouth.testing import Record
from tests.faults.soak.fleet import Fleet
from tests.lake import bid, order

RECORDS_A_TURN = 20
EVERY_S = 1.0


class Feed:
    """``records`` counts what Kafka has acknowledged, by topic."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.records = Counter[str]()
        self._fleet = fleet
        self._dice = random.Random(seed)

    def turn(self) -> None:
        """Some records into one topic."""
        name = self._dice.choice(self._fleet.names)
        made = [self.record(name) for _ in range(RECORDS_A_TURN * len(self._fleet.names) // 4)]
        # librdkafka waits for a broker that restarts, and repeats no record.
        self.records[name] += self._fleet.lake.produce(name, made)

    def record(self, name: str) -> Record:
        """One record of a topic, in any of the partitions that Kafka has confirmed."""
        key, second = self._dice.randrange(1000), self._dice.randrange(3600)
        value = order(key, "open", second) if self._fleet.upserts(name) else bid(key)
        bad = self._dice.random() < 0.01
        return (b"%d" % key, b"{bad" if bad else value, key % self._fleet.partitions[name])
