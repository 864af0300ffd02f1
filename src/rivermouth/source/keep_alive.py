"""Waiting without losing the session: a Connect server ends one that asks nothing for an hour.

A pipeline that has nothing to read asks Kafka alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from rivermouth.source.batches import Stop

ASK_S = 300.0
"""Seconds without a question; servers may be set to fewer than an hour."""
_SETTING = "spark.sql.session.timeZone"  # any session tells it; the server is asked each time


class KeepAlive:
    """Waits, and asks ``session`` a small question every ``ASK_S`` seconds.

    ``clock`` tells seconds that never go back.
    """

    def __init__(self, session: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._asked = clock()

    def wait(self, seconds: float, stop: Stop) -> bool:
        """Wait as long, or until ``stop`` is set; say whether it is.

        Raises what the session raises.
        """
        until = self._clock() + seconds
        while True:
            left = max(0.0, until - self._clock())
            if stop.wait(min(left, ASK_S)):
                return True
            if self._clock() - self._asked >= ASK_S:
                self._session.conf.get(_SETTING)
                self._asked = self._clock()
            if left <= ASK_S:
                return False
