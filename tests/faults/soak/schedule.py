"""What happens in a soak, and when. Pure.

Everything that ends the driver happens in the first quarter. So the second half is one life of one
process, whose memory may not grow. It begins a quarter after the last start: a JVM takes its heap
bit by bit, and the last of it when it first collects all of its garbage.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Happening(Enum):
    """What is done to the fleet."""

    RESTART_BROKER = "broker restarted"
    KILL = "driver killed"
    ADD_PARTITION = "partition added"
    RESTORE = "table restored, halt accepted"


@dataclass(frozen=True)
class Event:
    """Something that happens so many seconds after the start, to a pipeline by its number."""

    at_s: float
    what: Happening
    pipeline: int = 0


KILLS_AT = (0.06, 0.14, 0.22)
PARTITIONS_AT = (0.1, 0.3, 0.62, 0.85)
RESTORES_AT = (0.18,)
BROKER_RESTARTS = 5


def schedule(minutes: float, pipelines: int, seed: int) -> tuple[Event, ...]:
    """The events of a soak, in order. The broker restarts every sixth of the time."""
    dice, whole = random.Random(seed), minutes * 60
    sixths = [(number + 1) / (BROKER_RESTARTS + 1) for number in range(BROKER_RESTARTS)]
    shares = {
        Happening.RESTART_BROKER: sixths,
        Happening.KILL: KILLS_AT,
        Happening.ADD_PARTITION: PARTITIONS_AT,
        Happening.RESTORE: RESTORES_AT,
    }
    found = [
        Event(share * whole, what, dice.randrange(pipelines))
        for what, times in shares.items()
        for share in times
    ]
    return tuple(sorted(found, key=lambda each: each.at_s))
