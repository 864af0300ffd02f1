"""The records of a soak: a thread that fills the topics of the fleet until the block ends."""

from __future__ import annotations

import random
import threading
from collections import Counter

from rivermouth.testing import Record
from tests.faults.soak.fleet import Fleet
from tests.lake import bid, order

RECORDS_A_TURN = 20
EVERY_S = 1.0


class Feed:
    """``records`` counts what Kafka has acknowledged, by topic; ``fault``: why the thread ended."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.records = Counter[str]()
        self.fault: str | None = None
        self._fleet = fleet
        self._dice = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._feed)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _feed(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self._turn()
        except Exception as fault:  # whatever it is, a soak without records shows nothing
            self.fault = repr(fault)

    def _turn(self) -> None:
        name = self._dice.choice(self._fleet.names)
        made = [self.record(name) for _ in range(RECORDS_A_TURN * len(self._fleet.names) // 4)]
        # librdkafka waits for a broker that restarts, and repeats no record.
        self.records[name] += self._fleet.lake.produce(name, made)

    def record(self, name: str) -> Record:
        """One record of a topic, in any of the partitions that Kafka has confirmed."""
        key = self._dice.randrange(1000)
        value = (
            order(key, "open", self._dice.randrange(3600))
            if self._fleet.upserts(name)
            else bid(key)
        )
        bad = self._dice.random() < 0.01
        return (b"%d" % key, b"{bad" if bad else value, key % self._fleet.partitions[name])
