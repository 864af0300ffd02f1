"""A run: every selected pipeline on its own thread, so that none stops or hides another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth import trace
from rivermouth.books import Books
from rivermouth.checkpoint import Checkpoint
from rivermouth.config import OFFSETS_TABLE, Config, Mode, Pipeline
from rivermouth.decode.json import decoder
from rivermouth.delta import DeltaLog
from rivermouth.errors import RivermouthError, Unexpected
from rivermouth.ingest import Ingest, Rooms
from rivermouth.kafka import Kafka
from rivermouth.local.lock import TableLock
from rivermouth.offsets import Position
from rivermouth.report import CommitReport, Listener, OpenReport, PipelineReport
from rivermouth.scratch import ScratchFolder
from rivermouth.spark_errors import translate
from rivermouth.stream import Stream, Trigger, reader_options
from rivermouth.tables.offsets import OffsetsTable
from rivermouth.tables.quarantine import QuarantineTable
from rivermouth.tables.target import check_target, create_target
from rivermouth.write.append import Append
from rivermouth.write.commit import Target, Writer, record
from rivermouth.write.upsert import Upsert


class _Tally:
    """Passes everything on and sums up one pipeline's commits."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.report = PipelineReport("", 0, 0, 0, 0, 0.0)

    def opened(self, report: OpenReport) -> None:
        self._listener.opened(report)

    def committed(self, report: CommitReport) -> None:
        if any(each.span for each in report.ranges):
            self.report = replace(
                self.report,
                commits=self.report.commits + 1,
                applied=self.report.applied + report.applied,
                quarantined=self.report.quarantined + report.quarantined,
            )
        self._listener.committed(report)

    def finished(self, report: PipelineReport) -> None:
        self._listener.finished(report)


class Run:
    """Runs pipelines of one configuration in one Spark session.

    ``continuous`` repeats batches at each pipeline's trigger until ``stop`` is set;
    otherwise a pipeline ends where its topics ended when it started.
    """

    def __init__(
        self, config: Config, session: SparkSession, scratch: Path, *, continuous: bool
    ) -> None:
        self._config = config
        self._session = session
        self._scratch = scratch
        self._continuous = continuous
        # Of two pipelines that create their common table at once, one would fail.
        tables = {each.target.table for each in config.pipelines.values()}
        self._creating = {each: threading.Lock() for each in tables}
        self._offsets = OffsetsTable(OFFSETS_TABLE.path(config.warehouse))

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
        """Accept what undid commits of a pipeline; return where the next run goes on.

        See ``Ingest.resume``. Raises what stands against it.
        """
        with ExitStack() as held:
            ingest = self._prepared(self._config.pipelines[name], listener, held)
            return ingest.resume(self._session, accept)

    def _drive(self, name: str, *, listener: Listener, stop: threading.Event) -> PipelineReport:
        began = time.monotonic()
        tally = _Tally(listener)
        error: RivermouthError | None = None
        sequence = 0
        try:
            sequence = self._ingest(self._config.pipelines[name], tally, stop)
            trace.step(name, "close")
        except RivermouthError as fault:
            error = fault
        except (PySparkException, Py4JError, ConnectionError) as fault:
            error = translate(fault, name)
        except Exception as fault:  # a defect of ours: one pipeline's, not the run's
            error = Unexpected("an error nobody foresaw", where=name, found=repr(fault))
            error.__cause__ = fault
        if error is not None:
            trace.step(name, "halt", code=error.code)
        seconds = time.monotonic() - began
        report = replace(
            tally.report, pipeline=name, sequence=sequence, seconds=seconds, error=error
        )
        listener.finished(report)
        return report

    def _ingest(self, pipeline: Pipeline, tally: _Tally, stop: threading.Event) -> int:
        with ExitStack() as held:
            ingest = self._prepared(pipeline, tally, held)
            starts = ingest.open(self._session)
            if stop.is_set():
                return ingest.sequence
            options = self._config.kafka.revealed()
            scratch = ScratchFolder(self._scratch / "checkpoints", pipeline.name)
            checkpoint = Checkpoint(held.enter_context(scratch))
            every_ms = int(pipeline.trigger.total_seconds() * 1000)
            trigger = Trigger(every_ms if self._continuous else None)
            Stream(ingest, checkpoint).run(
                self._session, reader_options(pipeline, options, starts), trigger, stop
            )
            return ingest.sequence

    def _prepared(self, pipeline: Pipeline, listener: Listener, held: ExitStack) -> Ingest:
        """The pipeline with its table there, as configured, and locked by us."""
        table = pipeline.target.table
        path = table.path(self._config.warehouse)
        lock = OFFSETS_TABLE.path(self._config.warehouse).parent / "locks" / f"{table}.lock"
        held.enter_context(TableLock(self._session, lock))
        log = DeltaLog(path)
        log.check_without_hole()
        with self._creating[table]:
            create_target(self._session, pipeline, str(path))
        check_target(self._session, pipeline, str(path))
        books = Books(
            log=log,
            offsets=self._offsets,
            record=partial(record, path=str(path)),
            translate=partial(translate, where=pipeline.name),
        )
        rooms = Rooms(
            kafka=Kafka(self._config.kafka.revealed()),
            books=books,
            writer=self._writer(pipeline),
            decode=decoder(pipeline),
            listener=listener,
        )
        return Ingest(pipeline, rooms)

    def _writer(self, pipeline: Pipeline) -> Writer:
        table = pipeline.target.table
        target = Target(
            path=str(table.path(self._config.warehouse)),
            columns=tuple(each.name for each in pipeline.columns),
            keys=pipeline.target.keys,
            order_by=pipeline.target.order_by,
        )
        quarantine = QuarantineTable(str(table.quarantine.path(self._config.warehouse)))
        if pipeline.target.mode is Mode.UPSERT:
            return Upsert(target, quarantine, tombstones=pipeline.source.key is not None)
        return Append(target, quarantine, files=self._session.sparkContext.defaultParallelism)


_ONCE_AT_ONCE = 4
