"""Feeding an open pipeline: by Structured Streaming where that can plan its batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.config.platforms import Capability, Platform
from rivermouth.errors import SetupError, SourceError
from rivermouth.kafka.facts import AskKafka
from rivermouth.local.scratch import scratch_folder
from rivermouth.protocol.offsets import Position
from rivermouth.run.assembly import Assembly
from rivermouth.run.ingest import Ingest
from rivermouth.run.supervision import giving_way
from rivermouth.source.batches import (
    Stop,
    Trigger,
    header_options,
    kafka_options,
    reader_options,
    task_options,
)
from rivermouth.source.driver_planned import DriverPlanned
from rivermouth.source.streaming import Checkpoint, Stream, streaming_options
from rivermouth.spark.session import separate

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


@dataclass(frozen=True)
class Feeding:
    """How the pipelines of one run are fed.

    ``beside`` is how many they are. One that waits for its pace gives its turn of ``turns`` to
    another.
    """

    shared: Assembly
    continuous: bool
    turns: threading.Semaphore
    beside: int

    def feed(
        self,
        ingest: Ingest,
        starts: Position,
        kafka: Mapping[str, str],
        stop: Stop,
        well: Callable[[], object],
    ) -> None:
        """Read batches from ``starts`` until the end is reached, or ``stop`` is set.

        ``kafka`` are the options of the whole cluster; ``well`` is called when a trigger has ended.
        """
        pipeline, shared = ingest.pipeline, self.shared
        every_ms = int(pipeline.trigger.total_seconds() * 1000)
        trigger = Trigger(every_ms if self.continuous else None)
        partitions = len(starts.offsets) * self.beside
        told = kafka_options(kafka, pipeline.source.options, shared.platform)
        options = reader_options(told, partitions) | task_options(pipeline.source)
        options |= header_options(pipeline)
        if not planned_by_driver(pipeline, shared.platform):
            with scratch_folder(shared.scratch / "checkpoints", pipeline.name) as scratch:
                stream = Stream(ingest, Checkpoint(scratch))
                options |= streaming_options(pipeline, starts, trigger)
                stream.run(shared.session, options, trigger, stop, well)
            return
        # A MERGE takes its entry from session confs; those of another pipeline must not be there.
        session = shared.session
        if shared.platform.has(Capability.MERGE_WITH_TRANSACTION):
            session = separate(session)
        planned = DriverPlanned(ingest, starts)
        planned.run(session, options, trigger, GivingWay(stop, self.turns), well)


def planned_by_driver(pipeline: Pipeline, platform: Platform) -> bool:
    """Whether the driver plans the batches: where Structured Streaming cannot, or not so."""
    has_rate = pipeline.source.max_rate_per_partition is not None
    return has_rate or not platform.has(Capability.STREAMING)


class GivingWay:
    """A stop; while it is waited for, another pipeline has the turn of this one."""

    def __init__(self, stop: Stop, turns: threading.Semaphore) -> None:
        self._stop = stop
        self._wait = giving_way(turns, stop.wait)

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float) -> bool:
        return bool(self._wait(timeout))
