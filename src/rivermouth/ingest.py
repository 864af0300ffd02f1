"""One pipeline in one run: the order of the rooms, and nothing else.

Opened once (read facts, pass the guards, repair the projection), then fed micro-batches:
relate, decide, decode, write with an entry, read back, classify, project, report.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rivermouth.chain import Chain, Recorded
from rivermouth.config import Pipeline
from rivermouth.delta import DeltaLog
from rivermouth.errors import (
    CommitFailed,
    CommitUnknown,
    LedgerBroken,
    LedgerTrimmed,
    OffsetsTableAhead,
    RivermouthError,
    Superseded,
)
from rivermouth.failpoints import reach
from rivermouth.guards import check_identity, check_source
from rivermouth.kafka import Kafka
from rivermouth.ledger import CommitRecord, Entry, Outcome, RowCounts, app_id, classify
from rivermouth.offsets import OffsetRange, Position
from rivermouth.plan import Action, KafkaFacts, behind, births, decide, start_positions
from rivermouth.report import CommitReport, Listener, OpenReport
from rivermouth.tables.counting import with_rows
from rivermouth.tables.offsets import OffsetsTable
from rivermouth.write.commit import Writer

Translate = Callable[[Exception], RivermouthError]


@dataclass(frozen=True)
class Rooms:
    """The edges a pipeline works with."""

    kafka: Kafka
    log: DeltaLog
    offsets: OffsetsTable
    writer: Writer
    record: Callable[[SparkSession, Entry], None]
    decode: Callable[[DataFrame], DataFrame]
    translate: Translate
    listener: Listener


class Ingest:
    """The ledger state of one pipeline while it runs, and what may be done to it."""

    def __init__(self, pipeline: Pipeline, rooms: Rooms) -> None:
        self.pipeline = pipeline
        self._rooms = rooms
        self._where = f"{pipeline.name} {pipeline.target.table}"
        self._chain = Chain(pipeline.name, self._where)
        self._table = ""
        self._facts = KafkaFacts("", {}, {})

    @property
    def sequence(self) -> int:
        """The sequence of the newest entry."""
        return self._chain.sequence

    def open(self, session: SparkSession) -> Position:
        """Pass every guard and return the next offset to read of each partition.

        The table exists and is locked by us. Brings the offsets table up to date, and
        records partitions that the ledger has never seen. Raises a Halt before any write.
        """
        reach("P0")
        recorded = self._chain.extend(self._rooms.log.commits())
        self._table = self._rooms.log.snapshot().table
        self._check_ledger()
        if self._chain.newest is not None:
            check_identity(self._where, self._chain.newest, self._table, self.pipeline.identity)
        self._facts = self._rooms.kafka.facts(self.pipeline.source.topics)
        starts = start_positions(
            self.pipeline.name,
            self._chain.newest,
            self._facts,
            lambda each: self.pipeline.source.start.of(each.topic, each.partition),
        )
        resumed, projected = self._chain.sequence, self._catch_up(recorded)
        reach("P10")
        born = births(starts, self._chain.newest)
        if born:
            nothing = tuple(RowCounts(0, 0) for _ in born)
            self._commit(self._next_entry(born, nothing), partial(self._rooms.record, session))
        left = behind(starts, self._facts.watermarks)
        self._rooms.listener.opened(
            OpenReport(self.pipeline.name, resumed, starts, left, projected)
        )
        return starts

    def batch(self, raw: DataFrame, ranges: Sequence[OffsetRange]) -> None:
        """Commit one micro-batch of raw Kafka rows that covers exactly ``ranges``."""
        cluster, topics = self._rooms.kafka.identities(self.pipeline.source.topics)
        if self._chain.newest is not None:
            check_source(self.pipeline.name, self._chain.newest, cluster, topics)
        decision = decide(self.pipeline.name, ranges, self._chain.newest)
        reach("P2")
        if decision.halt is not None:
            raise decision.halt
        if decision.action is Action.PROCEED and ranges:
            decoded = self._rooms.decode(raw)
            write = partial(self._rooms.writer.write, decoded)
            self._commit(self._next_entry(tuple(ranges)), write)

    def _check_ledger(self) -> None:
        if self._chain.faults:
            raise self._chain.faults[0]
        txn = self._rooms.log.txn_version(app_id(self.pipeline.name))
        if txn and self._chain.newest is None:
            raise LedgerTrimmed(
                "log clean-up took every entry of this pipeline",
                where=self._where,
                expected=f"entry {txn} in the log",
                found="none",
            )
        if txn != self._chain.sequence:
            raise LedgerBroken(
                "the snapshot's txn is not the newest entry's",
                where=self._where,
                expected=f"txn {self._chain.sequence}",
                found=f"txn {txn}",
            )

    def _catch_up(self, recorded: list[Recorded]) -> int:
        """Project what a dead driver committed and did not project; return how many."""
        stands = self._rooms.offsets.sequence(self.pipeline.name)
        if stands > self._chain.sequence:
            raise OffsetsTableAhead(
                "the offsets table knows commits that the table's log does not",
                where=self._where,
                expected=f"sequence {self._chain.sequence} or less",
                found=f"sequence {stands}",
            )
        missing = [each for each in recorded if each.entry.sequence > stands]
        self._project(with_rows(self._rooms.log, missing))
        return len(missing)

    def _commit(self, entry: Entry, write: Callable[[Entry], object]) -> None:
        """Write, read back, classify, project, report. Raises unless the commit stands."""
        began = time.monotonic()
        reach("P3")
        fault: Exception | None = None
        try:
            write(entry)
        except Exception as raised:  # whatever it says, only the log knows what happened
            fault = raised
        reach("P6")
        recorded = self._read_back(entry, fault)
        reach("P7")
        standing = with_rows(self._rooms.log, recorded)
        self._project(standing)
        reach("P8")
        ours = next(each for each in standing if each.entry.commit == entry.commit)
        self._rooms.listener.committed(
            CommitReport(
                pipeline=self.pipeline.name,
                sequence=entry.sequence,
                table_version=ours.version,
                ranges=entry.ranges,
                rows=ours.entry.rows or (),
                position=ours.entry.position,
                seconds=time.monotonic() - began,
            )
        )

    def _next_entry(
        self, ranges: tuple[OffsetRange, ...], rows: tuple[RowCounts, ...] | None = None
    ) -> Entry:
        # A topic that was taken out of the configuration keeps its id: it may come back.
        recorded = self._chain.newest.topics if self._chain.newest else {}
        return Entry(
            pipeline=self.pipeline.name,
            sequence=self._chain.sequence + 1,
            commit=str(uuid.uuid4()),
            cluster=self._facts.cluster,
            table=self._table,
            topics={**recorded, **self._facts.topics},
            ranges=ranges,
            position=self._chain.position.advance(ranges),
            config=self.pipeline.identity,
            rows=rows,
        )

    def _read_back(self, entry: Entry, fault: Exception | None) -> list[Recorded]:
        """Our entry as it stands in the log; raises what applies where it does not."""
        try:
            since: list[CommitRecord] = list(self._rooms.log.commits_after(self._chain.version))
        except RivermouthError as unreadable:
            raise CommitUnknown(
                "the log cannot be read back", where=self._where, found=str(unreadable)
            ) from unreadable
        outcome = classify(entry, since)
        recorded = self._chain.extend(since)
        if outcome is Outcome.SUPERSEDED or outcome is Outcome.ALREADY_COMMITTED:
            raise Superseded(
                f"entry {entry.sequence} is another driver's",
                where=self._where,
                expected=f"commit {entry.commit}",
                found=f"commit {self._chain.newest.commit if self._chain.newest else None}",
            )
        if outcome is Outcome.ABSENT and fault is not None:
            raise self._rooms.translate(fault) from fault
        if outcome is Outcome.ABSENT:
            raise CommitFailed("Delta returned without a commit", where=self._where)
        if self._chain.faults:
            raise self._chain.faults[0]
        return recorded

    def _project(self, recorded: Sequence[Recorded]) -> None:
        self._rooms.offsets.project(recorded, str(self.pipeline.target.table))
