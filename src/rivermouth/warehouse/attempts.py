"""Attempts at a write while commits of others are in its way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rivermouth.config import Retry, pauses


@dataclass(frozen=True)
class Attempts:
    """How often something is attempted, and how long the pauses between are.

    ``pauses`` gives the pauses in seconds, and ends when the time for them is used up; ``pause``
    waits.
    """

    pauses: Callable[[], Iterator[float]]
    pause: Callable[[float], None] = time.sleep

    @staticmethod
    def by(retry: Retry) -> Attempts:
        """Attempts for as long as the configuration says."""
        return Attempts(lambda: pauses(retry, random.random, time.monotonic))

    def each(self) -> Iterator[int]:
        """The number of each attempt, from 0, after the pause before it.

        Ask for the next one only where an attempt has failed.
        """
        yield 0
        for number, seconds in enumerate(self.pauses(), 1):
            self.pause(seconds)
            yield number


ATTEMPTS = Attempts.by(Retry())
"""Attempts by the defaults of the configuration."""
