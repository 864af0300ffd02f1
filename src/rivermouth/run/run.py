"""A run: every selected pipeline on its own thread, so that none stops or hides another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth import debug
from rivermouth.config import Config, Pipeline
from rivermouth.config.platforms import LOCAL, Platform
from rivermouth.config.secret import Secrets, unresolved
from rivermouth.errors import RivermouthError
from rivermouth.protocol.accept_changes import Offsets, ResumePlan
from rivermouth.protocol.offsets import Position
from rivermouth.run.accepting import AcceptedDelete, accept_deletes
from rivermouth.run.assembly import Assembly
from rivermouth.run.feeding import Feeding
from rivermouth.run.projecting import AtOnce, Projecting
from rivermouth.run.report import Listener, PipelineReport
from rivermouth.run.supervision import GivingWay, Supervision, as_error
from rivermouth.spark.session import Spark
from rivermouth.warehouse.ports import Attempts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Run:
    """Runs pipelines of one configuration in one Spark session, which may be started for them.

    ``continuous`` repeats batches at each pipeline's trigger until ``stop`` is set; otherwise a
    pipeline ends where its topics ended when it started. What may pass by itself is tried again,
    for as long as the pipeline's ``retry`` says. ``audit`` checks the whole log of each table at
    the start. ``scratch`` is a folder on the driver's own disk; ``platform`` says what this session
    allows; ``secrets`` is asked for those that the configuration only names.
    """

    def __init__(
        self,
        config: Config,
        session: SparkSession | Spark,
        scratch: Path,
        *,
        continuous: bool,
        audit: bool = False,
        platform: Platform = LOCAL,
        secrets: Secrets = unresolved,
    ) -> None:
        self._config = config
        self._continuous = continuous
        self._audit = audit
        self._shared = Assembly.of(config, session, scratch, platform, secrets)

    def pipelines(
        self, names: Sequence[str], listener: Listener, stop: threading.Event
    ) -> list[PipelineReport]:
        """Run the named pipelines; return what each did, in the order of the names.

        If the caller is interrupted, ``stop`` is set, and the interrupt is raised once each
        pipeline has ended.
        """
        turns = threading.Semaphore(len(names) if self._continuous else _ONCE_AT_ONCE)
        shared, workers = self._shared, max(len(names), 1)
        feeding = Feeding(shared, self._continuous, workers)
        with (
            shared.listening(listener, names) as heard,
            shared.offsets_writer() as writer,
            ThreadPoolExecutor(workers) as threads,
        ):
            together = _Together(heard, stop, turns, writer, feeding)
            try:
                return list(threads.map(partial(self._drive, together), names))
            except BaseException:
                stop.set()  # the threads are waited for, and some of them would not end
                raise

    def resume(
        self,
        name: str,
        accept: str,
        listener: Listener,
        offsets: Offsets | None = None,
        agree: Callable[[ResumePlan], bool] = lambda plan: True,
    ) -> Position:
        """Accept what happened to a pipeline; return where the next run goes on.

        See ``Ingest.resume``. Raises what stands against it.
        """
        with ExitStack() as resources:
            pipeline = self._config.pipelines[name]
            resources.enter_context(self._shared.hold(pipeline))
            at_once = AtOnce(self._shared.offsets())
            ingest = self._shared.ingest(pipeline, listener, resources, at_once)
            return ingest.resume(accept, offsets, agree)

    def accept_deletes(
        self,
        name: str,
        versions: Sequence[int],
        tell: Callable[[AcceptedDelete], object],
        *,
        dry_run: bool = False,
    ) -> tuple[AcceptedDelete, ...]:
        """Record which rows DELETEs of others took from the table of a pipeline.

        See ``run.accepting``. Kafka is not asked. Raises what stands against it.
        """
        from rivermouth.warehouse.deleted_rows import deleted_rows

        pipeline = self._config.pipelines[name]
        at = self._shared.coordinates(pipeline)
        address = self._shared.warehouse.address(pipeline.target.table)
        rows_of = partial(deleted_rows, self._shared.session, address)
        with self._shared.hold(pipeline):
            return accept_deletes(at, versions, rows_of, tell, dry_run=dry_run)

    def _drive(self, together: _Together, name: str) -> PipelineReport:
        pipeline, stop = self._config.pipelines[name], GivingWay(together.stop, together.turns)
        pauses = Attempts.by(pipeline.retry).pauses
        watch = Supervision(pipeline, together.listener, stop, pauses)
        with together.turns:
            began = time.monotonic()
            error = self._outcome(pipeline, watch, together)
            seconds = time.monotonic() - began
        report = replace(watch.report, seconds=seconds, error=error)
        together.listener.finished(report)
        return report

    def _outcome(
        self, pipeline: Pipeline, watch: Supervision, together: _Together
    ) -> RivermouthError | None:
        """Run a pipeline to its end; what it ended with, None if all went well."""
        try:
            with self._shared.hold(pipeline):  # in the pauses, too
                watch.run(partial(self._attempt, pipeline, watch, together))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as fault:  # a panic of a library in Rust is no Exception
            error = as_error(fault, pipeline.name)
            debug.step(pipeline.ledger_name, "halt", code=error.code)
            return error
        debug.step(pipeline.ledger_name, "close")
        return None

    def _attempt(self, pipeline: Pipeline, watch: Supervision, together: _Together) -> None:
        """Open the pipeline and feed it, and again whenever what it was opened with is stale."""
        stop, again = together.stop, True
        while again:
            with ExitStack() as resources:
                ingest = self._shared.ingest(pipeline, watch, resources, together.writer, stop)
                starts = ingest.open(audit=self._audit)
                try:
                    again = not stop.is_set() and together.feeding.feed(
                        ingest, starts, watch.stop, watch.trigger_ended
                    )
                except Exception as fault:
                    if not self._shared.learns(fault, pipeline.name):
                        raise
                    again = not stop.is_set()


@dataclass(frozen=True)
class _Together:
    """What the pipelines of one call share."""

    listener: Listener
    stop: threading.Event
    turns: threading.Semaphore
    writer: Projecting
    feeding: Feeding


_ONCE_AT_ONCE = 4
