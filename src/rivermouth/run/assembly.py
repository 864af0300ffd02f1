"""Putting a pipeline together: its table prepared, its edges and its landing chosen."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.config import Config, Pipeline, TableName, taken_from
from rivermouth.config.pipeline import check_platform
from rivermouth.config.platforms import Capability, Platform
from rivermouth.config.registry import resolve
from rivermouth.config.secret import Secrets
from rivermouth.errors import LedgerBroken, LogUnreadable, Passing, RivermouthError, SchemaDiffers
from rivermouth.errors.registry import SchemasUnknown
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.groups import ConfiguredGroups
from rivermouth.local.scratch import (
    importing_from,
    scratch_folder,
    shared_folder,
    zipped,
)
from rivermouth.operate.facts import way_now
from rivermouth.protocol.commits import CommitPlan
from rivermouth.run.committer import Coordinates
from rivermouth.run.ingest import Edges, Ingest
from rivermouth.run.mirroring import mirroring
from rivermouth.run.preparing import definition_of, prepared, schema_of, torn_commit_told
from rivermouth.run.projecting import AtOnce, OffsetsUpkeep, OffsetsWriter, Projecting, flushed
from rivermouth.run.report import Listener, Silent
from rivermouth.run.supervision import RetryNoteListener, as_error
from rivermouth.schemas.known import KnownSchemas, schemas_of, with_schemas
from rivermouth.source.batches import kafka_options
from rivermouth.spark.session import Spark, import_from
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import Lake, in_bucket
from rivermouth.warehouse.lake.retry_notes import RetryNotes
from rivermouth.warehouse.ledger import Others
from rivermouth.warehouse.ports import (
    Attempts,
    LedgerLog,
    LedgerWrites,
    OffsetsTable,
    Warehouse,
)
from rivermouth.warehouse.quarantine import QuarantineTable, create_quarantine
from rivermouth.warehouse.tables import (
    check_schema,
)
from rivermouth.warehouse.warehouse import warehouse_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rivermouth.formats.decoder import Decode
    from rivermouth.write.landing import Landing, RawBatch, Site, Staged
    from rivermouth.write.rows import Rows


_IMPORTING = threading.Lock()
"""Two pipelines that begin at once would make a folder each, and Spark new workers for each."""


@dataclass(frozen=True)
class Assembly:
    """What the pipelines of one run share.

    ``spark`` is the session, which may not run yet. ``scratch`` is a folder on the driver's own
    disk; ``platform`` says what the session allows; ``secrets`` is asked for those that the
    configuration only names.
    """

    config: Config
    spark: Spark
    scratch: Path
    platform: Platform
    secrets: Secrets
    warehouse: Warehouse
    # Of two pipelines that create their common table at once, one would fail.
    creating: dict[TableName, threading.Lock] = field(default_factory=dict)
    # A pipeline that opens again, because topics came, does not read its whole log again.
    others: dict[str, Others] = field(default_factory=dict)
    unsettled: dict[str, set[str]] = field(default_factory=dict)
    """See ``Coordinates``; by pipeline, since a store may get a commit after the next opening."""

    @cached_property
    def schemas(self) -> KnownSchemas | None:
        """The schemas that records name; None where no registry is configured."""
        return schemas_of(self.config, self.secrets, self.scratch)

    @staticmethod
    def of(
        config: Config,
        session: SparkSession | Spark,
        scratch: Path,
        platform: Platform,
        secrets: Secrets,
    ) -> Assembly:
        """That of a configuration's tables, where they lie."""
        tables = {each.target.table for each in config.pipelines.values()}
        creating = {each: threading.Lock() for each in tables}
        spark = Spark.of(session)
        warehouse = warehouse_of(config, spark, secrets)
        if in_bucket(warehouse.lake):
            platform = platform.with_store()
        return Assembly(config, spark, scratch, platform, secrets, warehouse, creating)

    @property
    def lake(self) -> Lake | None:
        """Where the tables lie as files; None: in a catalog."""
        return self.warehouse.lake

    @property
    def session(self) -> SparkSession:
        """The session, which is started now if it does not run yet."""
        return self.spark.session()

    def ingest(
        self,
        pipeline: Pipeline,
        listener: Listener,
        resources: ExitStack,
        projecting: Projecting,
        stop: threading.Event | None = None,
    ) -> Ingest:
        """The pipeline with its table there, as configured, and ours to write.

        What it needs until its end is entered into ``resources``; the table is held already. At
        that end what it committed is in the offsets table. Once ``stop`` is set, no commit is
        tried again. Raises what stands against it.
        """
        check_platform(pipeline, self.platform)
        pipeline = self.with_schemas(pipeline)
        table = pipeline.target.table
        address = self.warehouse.address(table)
        attempts = Attempts.by(pipeline.retry, stop)
        kafka = Kafka(self.config.kafka.revealed(self.secrets))
        if pipeline.target.kafka is not None:  # a producer would wait for them, in each batch
            kafka.identities(pipeline.target.kafka)
        at, name = self.coordinates(pipeline), pipeline.ledger_name
        log = at.store.log
        with self.creating[table], torn_commit_told(log):
            added = prepared(pipeline, self, attempts, at.store)
        site = cache(partial(self.site, pipeline, resources, attempts))
        landing = Deferred(lambda: self._landing(site(), log))
        if self.spark.started is not None:  # what stands against it is told before anything else
            landing.made()
        resources.enter_context(flushed(projecting, name))
        at = replace(
            at,
            writes=self._writes(at, address, site),
            projecting=projecting,
            listener=listener,
            attempts=attempts,
            unsettled=self.unsettled.setdefault(name, set()),
        )
        others = self.others.setdefault(name, Others(log, name))
        edges = Edges(at, kafka, landing, landing.decode, others, added=added)
        if self.platform.has(Capability.FILES):
            edges = replace(edges, way=partial(way_now, pipeline, self.lake, log))
        return Ingest(edges)

    def with_schemas(self, pipeline: Pipeline) -> Pipeline:
        """See ``schemas.known.with_schemas``."""
        return with_schemas(pipeline, self.schemas)

    def learns(self, fault: Exception, pipeline: str) -> bool:
        """Whether it says that a batch met new schemas: the next opening asks for them."""
        error = as_error(fault, pipeline)
        if self.schemas is None or not isinstance(error, SchemasUnknown):
            return False
        self.schemas.want(error.numbers)
        return True

    def _landing(self, site: Site, log: LedgerLog) -> tuple[Landing, Decode]:
        """How rows land, and what decodes them; Spark is started."""
        from rivermouth.formats.decoder import decoder
        from rivermouth.write.landing import landing_of

        pipeline, landed = site.pipeline, self.creating[site.pipeline.target.table]
        apart = site.store is not None and not (site.one_host or site.in_bucket)
        if apart and self.lake is not None:
            from rivermouth.cluster.trial import see_one_place

            see_one_place(site.session, self.lake)
        with landed, torn_commit_told(log):
            landing = landing_of(site, self.platform)
        return landing, decoder(pipeline, site.coalesced, headers=pipeline.target.forward_headers)

    def _writes(self, at: Coordinates, address: Address, site: Callable[[], Site]) -> LedgerWrites:
        """What moves the ledger on, beside the landing.

        A write may fail because others altered the table in mid-run. Spark does not say in which
        column; and that is a halt.
        """

        def translate(fault: Exception) -> RivermouthError:
            from rivermouth.spark.errors import FAULTS

            error = at.writes.translate(fault)
            if error.passes is Passing.NO:
                with suppress(*FAULTS, LogUnreadable, LedgerBroken):
                    try:
                        there = schema_of(address, self.session, definition_of(at.store.log))
                        check_schema(at.pipeline, address, there)
                    except SchemaDiffers as differs:
                        return differs
            return error

        def record(plan: CommitPlan) -> None:
            from rivermouth.write.landings import driver_commits

            driver_commits.record(site(), plan)

        return replace(at.writes, record=record, translate=translate)

    def coordinates(self, pipeline: Pipeline) -> Coordinates:
        """What a command commits to that is no run: nobody listens, and it projects at once."""
        store, attempts = self.warehouse.ledger(pipeline), Attempts.by(pipeline.retry)

        def record(plan: CommitPlan) -> None:
            from rivermouth.write.landings import driver_commits

            # An entry alone needs no staging, and leaves nothing to end.
            driver_commits.record(self.site(pipeline, ExitStack(), attempts), plan)

        return Coordinates(
            pipeline=pipeline,
            store=store,
            writes=replace(self.warehouse.writes(pipeline), record=record),
            projecting=AtOnce(store.offsets),
            listener=Silent(),
            attempts=attempts,
        )

    def offsets(self) -> OffsetsTable:
        """The offsets table, which all pipelines share."""
        anyone = next(iter(self.config.pipelines.values()))
        return self.warehouse.ledger(anyone).offsets

    def offsets_writer(self) -> OffsetsWriter:
        """The one writer of the offsets table for all pipelines of a run."""
        offsets, config = self.offsets(), self.config
        ledgers = [each.ledger_name for each in config.pipelines.values()]
        upkeep = OffsetsUpkeep(offsets, ledgers, config.offsets_retention)
        return OffsetsWriter(offsets, after=upkeep)

    def listening(
        self, listener: Listener, names: Iterable[str]
    ) -> AbstractContextManager[Listener]:
        """The listener of a run of these pipelines, with what a run does beside telling it."""
        pipelines = [self.config.pipelines[each] for each in names]
        groups = ConfiguredGroups(self.config, self.secrets)
        if self.lake is not None:
            listener = RetryNoteListener(listener, RetryNotes(self.lake))
        return mirroring(listener, pipelines, groups)

    def hold(self, pipeline: Pipeline) -> AbstractContextManager[None]:
        """The right to write the pipeline's table, see ``Warehouse.hold``."""
        return self.warehouse.hold(pipeline.target.table)

    def site(
        self,
        pipeline: Pipeline,
        resources: ExitStack,
        attempts: Attempts,
        rows: Rows | None = None,
    ) -> Site:
        """What lands rows in the pipeline's table works with: by default those of its shape."""
        from rivermouth.write.landing import Site

        self.spark.once_started(self._imported)
        table, reasons = pipeline.target.table, pipeline.format.all_reasons
        bad = self.warehouse.address(table.quarantine)

        def make() -> None:
            create_quarantine(self.session, bad, attempts)

        writers = [each.name for each in self.config.writers(table)]
        lake = self.lake if self.platform.has(Capability.FILES) else None
        return Site(
            spark=self.spark,
            pipeline=pipeline,
            address=self.warehouse.address(table),
            make=lambda: rows or resolve(pipeline.shape.changes)(pipeline),
            quarantine=QuarantineTable(bad, reasons, cache(make)),
            one_host=self.platform.has(Capability.ONE_HOST),
            jvm=self.platform.has(Capability.JVM),
            staging=lambda: resources.enter_context(self.staging(pipeline.name)),
            store=None if lake is None else lake.store(table),
            bad=None if lake is None else lake.store(table.quarantine),
            kept=self.scratch / "keys" / _named(pipeline.name, self.warehouse.address(table)),
            at_end=resources.callback,
            others=tuple(each for each in writers if each != pipeline.name),
            kafka=kafka_options(self.config.kafka.revealed(self.secrets), {}, self.platform),
        )

    def _imported(self, session: SparkSession) -> None:
        """Let tasks import the modules that the driver imports from beside the configuration."""
        if not self.platform.has(Capability.JVM):
            return
        with _IMPORTING:
            for folder in taken_from(self.config):
                if self.platform.has(Capability.ONE_HOST):
                    import_from(session, importing_from(self.scratch / "imports", folder))
                else:
                    session.sparkContext.addPyFile(str(zipped(self.scratch / "imports", folder)))

    def staging(self, pipeline: str) -> AbstractContextManager[Path]:
        """A folder of this run; on this machine a locked one, which no other process removes."""
        shared = self.warehouse.scratch()
        if shared is None:
            return scratch_folder(self.scratch / "stages", pipeline)
        return shared_folder(shared, pipeline)


class Deferred:
    """A ``Landing`` that is made when its first batch comes, by ``make``; for one thread."""

    def __init__(self, make: Callable[[], tuple[Landing, Decode]]) -> None:
        self.made = cache(make)

    def decode(self, rows: DataFrame) -> DataFrame:
        """Kafka's rows, decoded."""
        return self.made()[1](rows)

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``."""
        return self.made()[0].stage(batch, plan, stack)


def _named(pipeline: str, address: Address) -> str:
    """A name for what is of this pipeline and this table alone."""
    return f"{pipeline}-{hashlib.sha256(str(address).encode()).hexdigest()[:16]}"
