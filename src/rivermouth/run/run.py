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

from pyspark.sql import SparkSession

from rivermouth.config import Catalog, Config, Pipeline
from rivermouth.config.secret import Secrets, unresolved
from rivermouth.debug import trace
from rivermouth.errors import RivermouthError, Unexpected, UpsertUnsupported
from rivermouth.formats.json import decoder
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.options import spark_options
from rivermouth.local.scratch import ScratchFolder, shared_folder
from rivermouth.protocol.offsets import Position
from rivermouth.run.ingest import Ingest, Rooms
from rivermouth.run.report import CommitReport, Listener, OpenReport, PipelineReport
from rivermouth.source.checkpoint import Checkpoint
from rivermouth.source.driver_planned import Planned
from rivermouth.source.streaming import Stream, Trigger, reader_options, streaming_options
from rivermouth.spark.address import Address
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.spark.platform import LOCAL, Platform
from rivermouth.warehouse.quarantine import QuarantineTable
from rivermouth.warehouse.target import add_mark, check_target, create_target, has_mark
from rivermouth.warehouse.warehouse import warehouse_of
from rivermouth.write.append import Append
from rivermouth.write.commit import Target, Writer
from rivermouth.write.latest import Upsert
from rivermouth.write.probe import check_replace
from rivermouth.write.replace_using import Replace


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
        self._scratch = scratch
        self._continuous = continuous
        # Of two pipelines that create their common table at once, one would fail.
        tables = {each.target.table for each in config.pipelines.values()}
        self._creating = {each: threading.Lock() for each in tables}
        self._platform = platform
        self._place = warehouse_of(config, session)
        self._secrets = secrets

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
        except FAULTS as fault:
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
            every_ms = int(pipeline.trigger.total_seconds() * 1000)
            trigger = Trigger(every_ms if self._continuous else None)
            options = reader_options(self._kafka_options(pipeline))
            if self._platform.jvm:
                scratch = ScratchFolder(self._scratch / "checkpoints", pipeline.name)
                stream = Stream(ingest, Checkpoint(held.enter_context(scratch)))
                options |= streaming_options(pipeline, starts)
                stream.run(self._session, options, trigger, stop)
            else:
                Planned(ingest, starts).run(self._session, options, trigger, stop)
            return ingest.sequence

    def _prepared(self, pipeline: Pipeline, listener: Listener, held: ExitStack) -> Ingest:
        """The pipeline with its table there, as configured, and ours to write."""
        table = pipeline.target.table
        address = self._place.address(table)
        held.enter_context(self._place.hold(table))
        with self._creating[table]:
            create_target(self._session, pipeline, address)
            if isinstance(self._config.warehouse, Catalog):
                QuarantineTable(self._place.address(table.quarantine)).create(self._session)
            check_target(self._session, pipeline, address)
            if pipeline.shape.keyed and not self._platform.jvm:
                self._prepare_replace(pipeline, address)
        rooms = Rooms(
            kafka=Kafka(self._config.kafka.revealed(self._secrets)),
            books=self._place.books(pipeline),
            writer=self._writer(pipeline, held),
            decode=decoder(pipeline),
            listener=listener,
        )
        return Ingest(pipeline, rooms)

    def _writer(self, pipeline: Pipeline, held: ExitStack) -> Writer:
        table = pipeline.target.table
        address = self._place.address(table)
        target = Target(
            address=address,
            columns=tuple(each.name for each in pipeline.columns),
            keys=pipeline.target.keys,
            order_by=pipeline.target.order_by,
            marked=pipeline.shape.keyed and has_mark(self._session, address),
        )
        quarantine = QuarantineTable(self._place.address(table.quarantine))
        tombstones = pipeline.source.key is not None
        if not pipeline.shape.keyed:
            one_machine = self._platform is LOCAL
            files = self._session.sparkContext.defaultParallelism if one_machine else None
            return Append(target, quarantine, files, persist=self._platform.jvm)
        if self._platform.jvm:
            return Upsert(target, quarantine, tombstones=tombstones)
        stage = shared_folder(self._place.scratch() or self._scratch, pipeline.name)
        return Replace(target, quarantine, held.enter_context(stage), tombstones=tombstones)

    def _prepare_replace(self, pipeline: Pipeline, address: Address) -> None:
        """What an upsert without a MERGE needs of engine, configuration and table."""
        table = pipeline.target.table
        names = [each.name for each in self._config.writers(table)]
        if neighbour := next((each for each in names if each != pipeline.name), ""):
            raise UpsertUnsupported(
                "through Spark Connect only one pipeline can upsert into a table",
                where=f"{pipeline.name} {table}",
                found=f"{neighbour}, which could replace what this one replaces",
                remedy="Make it one pipeline of all topics, or use a cluster in dedicated mode",
            )
        check_replace(self._session, address)
        if pipeline.source.key is not None:  # rows are deleted, and no MERGE can do it
            add_mark(self._session, address)

    def _kafka_options(self, pipeline: Pipeline) -> dict[str, str]:
        """What Spark's source is told of Kafka: the whole cluster's options, then the source's."""
        own = pipeline.source.options.items()
        options = {
            **self._config.kafka.revealed(self._secrets),
            **{name.removeprefix("kafka."): value for name, value in own},
        }
        return spark_options(options, databricks=self._platform.databricks)


_ONCE_AT_ONCE = 4
