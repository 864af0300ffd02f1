"""Rows to send: to a sink, and a commit that carries the entry alone.

They are made and checked before anything is sent, or committed, and kept until all are sent. So
the records that were left out are known before the commit, whose entry tells their number.

At least once: all rows are sent and acknowledged, then the entry is committed. At most once: the
entry is committed and read back, then the rows are sent. Delta skips a stale commit silently, so
rows that were sent before the commit was seen could be sent twice.

The batch is kept for both passes, over its bad records and its good ones, so Kafka is read once.
What own code makes of it is kept, too, and checked before anything is sent. No row in the table
could tell the counts later, so they are counted before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth import debug
from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.debug import reach
from rivermouth.errors import CommitUnknown, NotDelivered, NotSent
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import Way
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.spark.tables import quoted
from rivermouth.write.evaluation import applied, grouped_counts, persisted, quarantined, refusing
from rivermouth.write.files.table import SmallCommits
from rivermouth.write.landing import STALE, Changes, RawBatch, Site, Staged
from rivermouth.write.landings.driver_commits import Recording, entries_way, table_of
from rivermouth.write.rows import Sent
from rivermouth.write.sinks import Sink, in_order
from rivermouth.write.transform import RowsOfRecord, Transform, placed

_PLACE = ("topic", "partition", "offset")
_UNMOVED = (RowsOfRecord.ONE, RowsOfRecord.AT_MOST_ONE)
"""So made, rows stay in the order of their records."""


@dataclass(frozen=True)
class RowsToSend:
    """``rows`` as a sink takes them: ``row``, ``_kafka``, and the ``key`` and ``headers`` of the
    record where they are sent.

    ``number``: how many there are.
    """

    rows: DataFrame
    number: int


class SinkTransform:
    """The own code of one pipeline that sends."""

    def __init__(self, pipeline: Pipeline, transform: Transform) -> None:
        self._transform = transform
        # Built once: each is many calls into the JVM, too dear per batch.
        row = F.col("row")
        self._given = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
        self._refusing = refusing()
        self._row = F.struct(*(F.col(quoted(each.name)) for each in pipeline.row_columns))
        self._placed = placed(pipeline.target)
        target = pipeline.target
        with_key = target.kafka is not None and not target.message_key
        asked = {"key": with_key, "headers": target.forward_headers}
        self._carried = [name for name, sent in asked.items() if sent]

    def made(
        self, good: DataFrame, plan: CommitPlan, keep: Callable[[DataFrame], DataFrame]
    ) -> RowsToSend:
        """What is to be sent of good decoded rows, which can be read several times.

        All of it is evaluated here, and kept by ``keep``. Raises TransformFailed.
        """
        batch = Batch.of(plan)
        try:
            # First, since Spark shows only the first columns of many in a plan, which is looked at.
            given = good.select(self._refusing, *self._given)
            made = self._transform.made(given, batch)
            rows = made.rows.select(self._row.alias("row"), self._placed)
            if self._carried:
                rows = _with(rows, good, self._carried)
            if self._carried or made.of_record not in _UNMOVED:
                rows = in_order(rows)
            sent = keep(rows)
            return RowsToSend(sent, sent.count())
        except Exception as fault:
            failed = self._transform.blamed(fault, batch)
            if failed is None:
                raise
            raise failed from fault


def _with(rows: DataFrame, good: DataFrame, carried: Sequence[str]) -> DataFrame:
    """The rows, each with the message key, or the headers, of its record."""
    kafka = F.col("_kafka")
    place = (kafka.getField(each).alias(f"of_{each}") for each in _PLACE)
    same = [kafka.getField(each) == F.col(f"of_{each}") for each in _PLACE]
    joined = rows.join(good.select(*place, *carried), same, "left")
    return joined.select("row", "_kafka", *carried)


_WHERE_IT_STANDS = (
    "If it stands, they stay lost, as at-most-once says: read them with rivermouth.read. If not,"
    " the next run sends them"
)


class Send:
    """Sends the rows of every good record. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Sent):
            raise TypeError("this landing takes rows to send")
        self._site = site
        self._first = site.rows.first
        make: Callable[[Site], Sink] = resolve(site.rows.sink)
        self._sink = make(site)
        own, config = site.rows.transform, site.config
        self._own = SinkTransform(config, own) if own is not None and config is not None else None
        commits = SmallCommits(table_of(site))
        self._recording = Recording(site.address, entries_way(site), commits)
        self._sent: tuple[OffsetRange, ...] = ()

    def stage(self, batch: RawBatch | Changes, plan: CommitPlan, held: ExitStack) -> Staged:
        """See ``Landing.stage``. All that is to be sent is made, and nothing is sent."""
        if isinstance(batch, Changes):
            raise TypeError("this landing takes records to send, no changes by key")
        if not self._recording.may(plan):
            return STALE
        rows = self._site.coalesced(batch.decoded())
        decoded = held.enter_context(persisted(rows, self._site.kept_in(plan)))
        counts = grouped_counts(decoded, plan.draft.ranges)
        good = decoded.where("code IS NULL") if applied(counts) else None
        left_out = 0
        if good is not None and self._own is not None:
            made = self._own.made(good, plan, partial(self._keep_made, plan, held))
            good, left_out = made.rows, applied(counts) - made.number
        elif good is None and self._sink.every_batch:
            good = decoded.where("code IS NULL")

        def commit(plan: CommitPlan) -> None:
            if bad := quarantined(counts):
                self._site.quarantine.write(decoded.where("code IS NOT NULL"), plan, bad)
            # A commit that is tried again because others were in the way has sent its rows.
            if self._first and good is not None and self._sent != plan.draft.ranges:
                self._send(good, plan)
            self._recording.record(self._site.session, plan, plan.entry(counts, left_out))

        if self._first or good is None:
            return Staged(commit)
        return Staged(commit, after=partial(self._send_last, good), give_up=self._not_sent)

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """See ``Landing.record``."""
        self._recording.record(session, plan, plan.empty_entry())

    def way(self) -> Way | None:
        """See ``Landing.way``."""
        return self._recording.way() if self._site.one_host else None

    def _send_last(self, good: DataFrame, plan: CommitPlan) -> None:
        """At most once: the rows that waited for their commit are sent."""
        try:
            self._send(good, plan)
        except Exception as fault:
            sink = self._sink.name
            raise NotDelivered(
                f"entry {plan.sequence} stands, but {sink} did not take all of its records",
                where=self._site.pipeline,
                expected=f"all of {_listed(plan)}",
                found=getattr(fault, "found", "") or str(fault),
            ) from fault

    def _not_sent(self, plan: CommitPlan, fault: Exception) -> None:
        """At most once: where the commit stands, who opens the pipeline again goes on behind its
        rows.
        """
        if isinstance(fault, CommitUnknown):
            raise NotDelivered(
                f"entry {plan.sequence} may stand, but its records were not sent",
                where=self._site.pipeline,
                expected=f"all of {_listed(plan)}",
                found=str(fault),
                remedy=_WHERE_IT_STANDS,
            ) from fault

    def _send(self, good: DataFrame, plan: CommitPlan) -> None:
        debug.step(plan.draft.pipeline, "send", commit=plan.commit)
        reach("P14")
        try:
            self._sink.send(good, plan)
        except FAULTS as fault:
            told = translate(fault, self._site.pipeline)
            raise NotSent(
                f"{self._sink.name} did not take all records of {_listed(plan)}",
                where=self._site.pipeline,
                found=f"{told.code} {told.found or told.what}",
                passes=told.passes,
            ) from fault
        self._sent = plan.draft.ranges
        debug.step(plan.draft.pipeline, "sent", commit=plan.commit)
        reach("P15")

    def _keep_made(self, plan: CommitPlan, held: ExitStack, made: DataFrame) -> DataFrame:
        folder = self._site.kept_in(plan)
        beside = None if folder is None else folder.with_name(f"{folder.name}-made")
        return held.enter_context(persisted(self._site.coalesced(made), beside))


def _listed(plan: CommitPlan) -> str:
    return ", ".join(map(str, plan.draft.ranges))
