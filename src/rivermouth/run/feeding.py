"""Feeding an open pipeline: by Structured Streaming where that can plan its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.local.scratch import ScratchFolder
from rivermouth.protocol.offsets import Position
from rivermouth.registry.platforms import Capability, Platform
from rivermouth.run.assembly import Assembly
from rivermouth.run.ingest import Ingest
from rivermouth.run.supervision import giving_way
from rivermouth.source.batches import Stop, Trigger
from rivermouth.source.checkpoint import Checkpoint
from rivermouth.source.driver_planned import DriverPlanned
from rivermouth.source.options import header_options, kafka_options, reader_options, task_options
from rivermouth.source.streaming import Stream, streaming_options
from rivermouth.spark.session import separate


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
            with ScratchFolder(shared.scratch / "checkpoints", pipeline.name) as scratch:
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
