"""When an endless run has to be opened again: what it was opened with is no longer so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rivermouth.config import Pipeline
from rivermouth.errors import SetupError, SourceError
from rivermouth.kafka.facts import AskKafka

LOOK_S = 10.0
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


class OtherTopics:
    """A sign that the pattern of a pipeline matches other topics than at its opening.

    It is looked for once ``well`` was called: so each opening reads something. Kafka is asked at
    most once in a trigger, and once in ten seconds. No answer is no sign: the batches meet the same
    error, and tell it. Never seen where topics are named. ``kafka`` makes a client that no batch
    uses at the same time.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        kafka: Callable[[], AskKafka],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = pipeline.source.topics
        self._pause = max(LOOK_S, pipeline.trigger.total_seconds())
        self._kafka = kafka
        self._asked: AskKafka | None = None
        self._now = now
        self._next: float | None = None

    def well(self) -> None:
        """A trigger has ended."""
        if self._next is None:
            self._next = self._now() + self._pause

    def __call__(self) -> bool:
        now = self._now()
        if not self._topics.pattern or self._next is None or now < self._next:
            return False
        self._next = now + self._pause
        try:
            self._asked = self._asked or self._kafka()
            return self._topics.among(self._asked.names()) != self._topics
        except (SourceError, SetupError):
            return False
