"""Drivers that are killed at a named point, at any moment, or when something is seen."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from tests.lake import Lake
from tests.processes import end_group, said_by
from tests.waiting import PATIENCE_S

MOMENT, LATE = "moment", "too late"


@dataclass
class KilledDrivers:
    """A lake under drivers that are killed; ``kills`` counts them by where that was."""

    names: ClassVar[tuple[str, ...]]
    """The pipelines that each of them runs."""

    lake: Lake
    dice: random.Random
    kills: Counter[str] = field(default_factory=Counter)

    @property
    def killed(self) -> int:
        """How many drivers were killed before they came to their end."""
        return self.kills.total() - self.kills[LATE]

    def strike(self, where: str, seen: Callable[[], bool] | None = None) -> None:
        """Start a driver and kill it: at a point, when something is seen, or at any ``MOMENT``
        after it has opened a pipeline. One that ends in another way fails the campaign.
        """
        at_point = where != MOMENT and seen is None
        failpoints = f"{where}={self.dice.randint(1, 3)}*kill" if at_point else ""
        with self.lake.driver(*self.names, failpoints=failpoints) as driver:
            begun = ""
            if seen is not None:
                when(seen, driver.pid).join()
            elif where == MOMENT and driver.stdout is not None:
                begun = driver.stdout.readline()
                if begun.startswith("opened"):
                    time.sleep(self.dice.random() * 4)
                    end_group(driver.pid)
            said = begun + said_by(driver)
        assert driver.returncode in (0, -signal.SIGKILL), f"a driver ended by itself: {said}"
        self.kills[where if driver.returncode else LATE] += 1

    def finish(self) -> None:
        """Let a driver come to its end."""
        with self.lake.driver(*self.names) as driver:
            said = said_by(driver)
        assert driver.returncode == 0, f"the last driver failed: {said[-500:]}"


def when(seen: Callable[[], bool], group: int) -> threading.Thread:
    """Kill a driver and its JVM when something is seen."""

    def watch() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if seen():
                end_group(group)
                return
            time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def arrival(servers: str, topic: str, partitions: int) -> Callable[[], bool]:
    """Whether something has got to a topic since now."""
    options = {"bootstrap.servers": servers, "group.id": "watch", "fetch.wait.max.ms": "5"}
    watching = Consumer(options)
    watching.assign([TopicPartition(topic, each, OFFSET_END) for each in range(partitions)])
    watching.poll(1.0)
    return lambda: watching.poll(0.01) is not None
