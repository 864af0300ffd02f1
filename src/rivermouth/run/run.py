"""A run: every selected pipeline on its own thread, so that none stops or hides another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import Config, Pipeline
from rivermouth.config.secret import Secrets, unresolved
from rivermouth.debug import trace
from rivermouth.errors import RivermouthError, Unexpected
from rivermouth.kafka.login_files import LoginFiles
from rivermouth.kafka.options import spark_options
from rivermouth.local.scratch import ScratchFolder
from rivermouth.protocol.offsets import Position
from rivermouth.registry.platforms import LOCAL, Capability, Platform
from rivermouth.run.assembly import Assembly
from rivermouth.run.ingest import Ingest
from rivermouth.run.report import Listener, PipelineReport
from rivermouth.run.tally import Tally
from rivermouth.source.batches import Stop, Trigger
from rivermouth.source.checkpoint import Checkpoint
from rivermouth.source.driver_planned import DriverPlanned
from rivermouth.source.options import reader_options
from rivermouth.source.streaming import Stream, streaming_options
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.warehouse.warehouse import warehouse_of


class Run:
    """Runs pipelines of one configuration in one Spark session.

    ``continuous`` repeats batches at each pipeline's trigger until ``stop`` is set;
    otherwise a pipeline ends where its topics ended when it started. ``scratch`` is a folder
    on the driver's own disk; ``platform`` says what this session allows; ``secrets`` is asked
    for those that the configuration only names.
    """

    def __init__(
        self,
        config: Config,
        session: SparkSession,
        scratch: Path,
        *,
        continuous: bool,
        platform: Platform = LOCAL,
        secrets: Secrets = unresolved,
    ) -> None:
        self._config = config
        self._session = session
        self._continuous = continuous
        tables = {each.target.table for each in config.pipelines.values()}
        self._shared = Assembly(
            config=config,
            session=session,
            scratch=scratch,
            platform=platform,
            secrets=secrets,
            warehouse=warehouse_of(config, session),
            creating={each: threading.Lock() for each in tables},
        )

    def pipelines(
        self, names: Sequence[str], listener: Listener, stop: threading.Event
    ) -> list[PipelineReport]:
        """Run the named pipelines; return what each did, in the order of the names."""
        at_once = len(names) if self._continuous else min(len(names), _ONCE_AT_ONCE)
        with ThreadPoolExecutor(max_workers=at_once) as threads:
            drive: Callable[[str], PipelineReport] = partial(
                self._drive, listener=listener, stop=stop
            )
            return list(threads.map(drive, names))

    def resume(self, name: str, accept: str, listener: Listener) -> Position:
        """Accept what rolled commits of a pipeline back; return where the next run goes on.

        See ``Ingest.resume``. Raises what stands against it.
        """
        with ExitStack() as held:
            ingest = self._shared.ingest(self._config.pipelines[name], listener, held)
            return ingest.resume(self._session, accept)

    def _drive(self, name: str, *, listener: Listener, stop: threading.Event) -> PipelineReport:
        began = time.monotonic()
        tally = Tally(listener)
        error: RivermouthError | None = None
        sequence = 0
        try:
            sequence = self._ingest(self._config.pipelines[name], tally, stop)
            trace.step(name, "close")
        except RivermouthError as fault:
            error = fault
        except FAULTS as fault:
            error = translate(fault, name)
        except Exception as fault:  # a defect of ours: one pipeline's, not the run's
            error = Unexpected("an error that nobody foresaw", where=name, found=repr(fault))
            error.__cause__ = fault
        if error is not None:
            trace.step(name, "halt", code=error.code)
        seconds = time.monotonic() - began
        report = replace(
            tally.report, pipeline=name, sequence=sequence, seconds=seconds, error=error
        )
        listener.finished(report)
        return report

    def _ingest(self, pipeline: Pipeline, tally: Tally, stop: threading.Event) -> int:
        """Open the pipeline and feed it, and so again whenever files of the login were replaced."""
        again, sequence = True, 0
        while again:
            with ExitStack() as held:
                ingest = self._shared.ingest(pipeline, tally, held, stop)
                starts = ingest.open(self._session)
                again = not stop.is_set() and self._read(ingest, starts, stop)
                sequence = ingest.sequence
        return sequence

    def _read(self, ingest: Ingest, starts: Position, stop: threading.Event) -> bool:
        """Feed the pipeline with batches; whether an endless run is to open again.

        Its clients have read the files of the login when they were made, and keep them.
        """
        kafka = self._shared.config.kafka.revealed(self._shared.secrets)
        files = LoginFiles(kafka)
        if not self._continuous:
            self._feed(ingest, starts, kafka, stop)
            return False
        self._feed(ingest, starts, kafka, _UntilReplaced(stop, files))
        return not stop.is_set() and files.replaced()

    def _feed(self, ingest: Ingest, starts: Position, kafka: Mapping[str, str], stop: Stop) -> None:
        """Read batches, planned as the platform allows."""
        pipeline, shared = ingest.pipeline, self._shared
        every_ms = int(pipeline.trigger.total_seconds() * 1000)
        trigger = Trigger(every_ms if self._continuous else None)
        options = reader_options(_kafka_options(pipeline, kafka, shared.platform))
        if shared.platform.has(Capability.STREAMING):
            with ScratchFolder(shared.scratch / "checkpoints", pipeline.name) as scratch:
                stream = Stream(ingest, Checkpoint(scratch))
                options |= streaming_options(pipeline, starts)
                stream.run(self._session, options, trigger, stop)
        else:
            DriverPlanned(ingest, starts).run(self._session, options, trigger, stop)


class _UntilReplaced:
    """A stop that is also set once a file of the login was replaced."""

    def __init__(self, stop: threading.Event, files: LoginFiles) -> None:
        self._stop = stop
        self._files = files

    def is_set(self) -> bool:
        return self._stop.is_set() or self._files.replaced()

    def wait(self, timeout: float) -> bool:
        return self._stop.wait(timeout) or self._files.replaced()


def _kafka_options(
    pipeline: Pipeline, kafka: Mapping[str, str], platform: Platform
) -> Mapping[str, str]:
    """What Spark's source is told of Kafka: the whole cluster's options, then the source's."""
    own = pipeline.source.options.items()
    options = {**kafka, **{name.removeprefix("kafka."): value for name, value in own}}
    return spark_options(options, databricks=platform.has(Capability.SHADED_KAFKA))


_ONCE_AT_ONCE = 4
