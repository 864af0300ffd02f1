"""When an endless run has to be opened again: what it was opened with is no longer so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rivermouth.errors import SetupError, SourceError
from rivermouth.run.ingest import Ingest

_LOOK_S = 10.0
"""To ask for the names of all topics is one request, but it may be a large answer."""


class UntilStale:
    """A stop that is also set once one of ``signs`` was seen; see ``source.batches.Stop``."""

    def __init__(self, stop: threading.Event, *signs: Callable[[], bool]) -> None:
        self._stop = stop
        self._signs = signs
        self._stale = False

    @property
    def stale(self) -> bool:
        """Whether a sign was seen. It is kept: a sign may pass."""
        self._stale = self._stale or any(sign() for sign in self._signs)
        return self._stale

    def is_set(self) -> bool:
        return self._stop.is_set() or self.stale

    def wait(self, timeout: float) -> bool:
        return self._stop.wait(timeout) or self.stale


def other_topics(ingest: Ingest, now: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """A sign that the pattern of a pipeline matches other topics than at its opening.

    Asks Kafka at most once in a trigger, and once in ten seconds. No answer is no sign: the
    batches meet the same error, and tell it. Always False where topics are named.
    """
    pipeline = ingest.pipeline
    pause = max(_LOOK_S, pipeline.trigger.total_seconds())
    asked = now()

    def sign() -> bool:
        nonlocal asked
        if not pipeline.source.topics.pattern or now() - asked < pause:
            return False
        asked = now()
        try:
            return ingest.topics_now() != pipeline.source.topics
        except (SourceError, SetupError):
            return False

    return sign
