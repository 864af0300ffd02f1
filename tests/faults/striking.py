"""A driver that is killed at a named point, at any moment, or when something is seen."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from tests.lake import Lake
from tests.processes import end_group, said_by
from tests.waiting import PATIENCE_S

MOMENT, LATE = "moment", "too late"


def strike(lake: Lake, names: tuple[str, ...], point: str, dice: random.Random) -> str:
    """Start a driver and kill it at ``point``, or at any moment after it has opened a pipeline.

    Returns the point, or ``LATE`` where the driver came to its end before. A driver that ends in
    another way fails the campaign.
    """
    times = 1 if point == MOMENT else dice.randint(1, 3)
    failpoints = "" if point == MOMENT else f"{point}={times}*kill"
    with lake.driver(*names, failpoints=failpoints) as driver:
        assert driver.stdout is not None
        begun = ""
        if point == MOMENT:
            begun = driver.stdout.readline()
            if begun.startswith("opened"):
                time.sleep(dice.random() * 4)
                end_group(driver.pid)
        said = begun + said_by(driver)
    assert driver.returncode in (0, -signal.SIGKILL), f"a driver ended by itself: {said}"
    return point if driver.returncode else LATE


def strike_when(lake: Lake, names: tuple[str, ...], seen: Callable[[], bool]) -> bool:
    """Start a driver and kill it when something is seen; whether it was killed."""
    with lake.driver(*names) as driver:
        when(seen, driver.pid).join()
        said = said_by(driver)
    assert driver.returncode in (0, -signal.SIGKILL), f"a driver ended by itself: {said}"
    return driver.returncode != 0


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
