"""Feeding an open pipeline: by Structured Streaming where that can plan its batches.

An endless run ends, too, once what its pipeline was opened with is stale: then it is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rivermouth.config import Pipeline
from rivermouth.config.platforms import Capability, Platform
from rivermouth.errors import SetupError, SourceError
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import AskKafka
from rivermouth.kafka.login import LoginFiles
from rivermouth.local.scratch import remove_dead, scratch_folder
from rivermouth.protocol.offsets import Position
from rivermouth.run.assembly import Assembly
from rivermouth.run.ingest import Ingest
from rivermouth.source.batches import (
    Stop,
    header_options,
    kafka_options,
    reader_options,
    task_options,
)
from rivermouth.spark.session import POOL, separate

ASK_NAMES_S = 10.0
"""To ask for the names of all topics is one request, but it may be a large answer."""

FEW_PARTITIONS = 200
"""Consumers of so many cost little, see docs/scale.md."""


class UntilStale:
    """A stop that is also set once one of ``signs`` was seen; see ``source.batches.Stop``."""

    def __init__(self, stop: Stop, *signs: Callable[[], bool]) -> None:
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

    Kafka is asked once a trigger has ended: so each opening reads something. It is asked at most
    once in a trigger, and once in ten seconds. No answer is no sign: the batches meet the same
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
        self._pause = max(ASK_NAMES_S, pipeline.trigger.total_seconds())
        self._kafka = kafka
        self._client: AskKafka | None = None
        self._now = now
        self._next: float | None = None

    def trigger_ended(self) -> None:
        """Kafka may be asked from now on."""
        if self._next is None:
            self._next = self._now() + self._pause

    def __call__(self) -> bool:
        now = self._now()
        if not self._topics.pattern or self._next is None or now < self._next:
            return False
        self._next = now + self._pause
        try:
            self._client = self._client or self._kafka()
            return self._topics.among(self._client.names()) != self._topics
        except (SourceError, SetupError):
            return False


@dataclass(frozen=True)
class Feeding:
    """How the pipelines of one run are fed; ``pipelines`` is how many there are."""

    shared: Assembly
    endless: bool
    pipelines: int

    @property
    def _scratch(self) -> Path:
        """Where the checkpoints of runs are."""
        return self.shared.scratch / "checkpoints"

    def feed(
        self,
        ingest: Ingest,
        starts: Position,
        stop: Stop,
        trigger_ended: Callable[[], object],
    ) -> bool:
        """Read batches from ``starts`` until the end is reached, or ``stop`` is set.

        Whether an endless run is to open the pipeline again: its clients read the files of the
        login when they were made, and keep them. The topics that a pattern matches are those of the
        opening, too. A run that ends and has nothing to read starts no Spark. ``trigger_ended`` is
        called when a trigger has ended.
        """
        kafka = self.shared.config.kafka.revealed(self.shared.secrets)
        if not self.endless and not ingest.waiting(starts):
            self._scratch.mkdir(parents=True, exist_ok=True)
            remove_dead(self._scratch)  # as who reads does
            trigger_ended()
            return False
        if not self.endless:
            self._read(ingest, starts, kafka, stop, trigger_ended)
            return False
        others = OtherTopics(ingest.pipeline, partial(Kafka, kafka))
        until = UntilStale(stop, LoginFiles(kafka).replaced, others)

        def ended() -> None:
            others.trigger_ended()
            trigger_ended()

        self._read(ingest, starts, kafka, until, ended)
        return not stop.is_set() and until.stale

    def _read(
        self,
        ingest: Ingest,
        starts: Position,
        kafka: Mapping[str, str],
        stop: Stop,
        trigger_ended: Callable[[], object],
    ) -> None:
        pipeline, shared, endless = ingest.pipeline, self.shared, self.endless
        if stop.is_set():
            return
        session = shared.session
        if shared.platform.has(Capability.JVM):  # the threads of this one inherit the pool
            session.sparkContext.setLocalProperty(POOL, pipeline.name)
        given = kafka_options(kafka, pipeline.source.options, shared.platform)
        options = reader_options(given, len(starts.offsets) * self.pipelines)
        options |= task_options(pipeline.source) | header_options(pipeline)
        least = least_of_each(pipeline, shared.platform, len(starts.offsets))
        if least == 1 and not planned_by_driver(pipeline, shared.platform):
            from rivermouth.source.streaming import Checkpoint, Stream, streaming_options

            with scratch_folder(self._scratch, pipeline.name) as scratch:
                stream = Stream(ingest, Checkpoint(scratch))
                options |= streaming_options(pipeline, starts, endless=endless)
                stream.run(session, options, stop, trigger_ended, endless=endless)
            return
        # A MERGE takes its entry from session confs; those of another pipeline must not be there.
        if shared.platform.has(Capability.JVM):
            session = separate(session)
        from rivermouth.source.driver_planned import DriverPlanned

        planned = DriverPlanned(ingest, starts, least=least)
        planned.run(session, options, stop, trigger_ended, endless=endless)


def planned_by_driver(pipeline: Pipeline, platform: Platform) -> bool:
    """Whether the driver plans the batches: where Structured Streaming cannot, or not so."""
    has_rate = pipeline.source.max_rate_per_partition is not None
    return has_rate or not platform.has(Capability.JVM)


def least_of_each(pipeline: Pipeline, platform: Platform, partitions: int) -> int:
    """How many offsets a batch takes at least of a partition that it reads, if so many wait.

    Structured Streaming takes some of every partition. To take a consumer, Spark counts all that it
    keeps, which costs about as much as to read as many records. Where a full batch has fewer of
    each partition, the driver plans, and partitions take turns. Not on a cluster: who plans there
    tells Spark no executor that has a consumer of the partition already.
    """
    if partitions <= FEW_PARTITIONS or not platform.has(Capability.ONE_HOST):
        return 1
    return partitions if partitions**2 > pipeline.source.max_offsets_per_trigger else 1
