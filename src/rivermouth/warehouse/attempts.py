"""Attempts at a write while commits of others are in its way."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rivermouth.config import Retry, pauses


@dataclass(frozen=True)
class Attempts:
    """How often something is attempted, and how long the pauses between are.

    ``pauses`` gives the pauses in seconds, and ends when the time for them is used up. ``pause``
    waits, and says whether to stop trying.
    """

    pauses: Callable[[], Iterator[float]]
    pause: Callable[[float], bool | None] = time.sleep

    @staticmethod
    def by(retry: Retry, stop: threading.Event | None = None) -> Attempts:
        """Attempts for as long as the configuration says, or until ``stop`` is set."""
        pause = stop.wait if stop is not None else time.sleep
        return Attempts(lambda: pauses(retry, random.random, time.monotonic), pause)

    def each(self) -> Iterator[int]:
        """The number of each attempt, from 0, after the pause before it.

        Ask for the next one only where an attempt has failed.
        """
        yield 0
        for number, seconds in enumerate(self.pauses(), 1):
            if self.pause(seconds):
                return
            yield number


ATTEMPTS = Attempts.by(Retry())
"""Attempts by the defaults of the configuration."""
