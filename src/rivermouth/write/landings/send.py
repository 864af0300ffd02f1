"""Rows to send: to a sink, and a commit that carries the entry alone.

They are made, checked and counted before anything is sent or committed, and kept until all are
sent: Kafka is read once, and no row in the table could tell the counts later.

At least once: all rows are sent and acknowledged, then the entry is committed. At most once: the
entry is committed and read back, then the rows are sent. Delta skips a stale commit silently, so
rows that were sent before the commit was seen could be sent twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import debug
from rivermouth.config import Pipeline
from rivermouth.debug import reach
from rivermouth.errors import CommitUnknown, NotDelivered, NotSent
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.spark.tables import quoted
from rivermouth.write.evaluation import applied, refusing
from rivermouth.write.landing import STALE, RawBatch, Site, Staged
from rivermouth.write.landings.driver_commits import Recording
from rivermouth.write.rows import Sent
from rivermouth.write.sinks import FunctionSink, KafkaSink, Sink, in_order
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
        with self._transform.blamed(batch):
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
        to_topics = site.pipeline.target.kafka is not None
        self._sink: Sink = KafkaSink(site) if to_topics else FunctionSink(site)
        own = site.rows.transform
        self._own = None if own is None else SinkTransform(site.pipeline, own)
        self._recording = Recording(site)
        self._sent: tuple[OffsetRange, ...] = ()

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. All that is to be sent is made, and nothing is sent."""
        if not self._recording.may(plan):
            return STALE
        decoded = self._site.counted(batch.decoded(), plan, stack)
        counts, left_out = decoded.counts, 0
        good = decoded.good if applied(counts) or self._sink.every_batch else None
        if applied(counts) and self._own is not None:
            made = self._own.made(
                decoded.good,
                plan,
                lambda rows: self._site.keep(self._site.coalesced(rows), plan, "made", stack),
            )
            good, left_out = made.rows, applied(counts) - made.number

        def commit(plan: CommitPlan) -> None:
            decoded.write_bad(plan)
            # A commit that is tried again because others were in the way has sent its rows.
            if self._first and good is not None and self._sent != plan.draft.ranges:
                self._send(good, plan)
            self._recording.record(plan, plan.entry(counts, left_out))

        if self._first or good is None:
            return Staged(commit)
        return Staged(commit, after=partial(self._send_last, good), give_up=self._not_sent)

    def _send_last(self, good: DataFrame, plan: CommitPlan) -> None:
        """At most once: the rows that waited for their commit are sent."""
        try:
            self._send(good, plan)
        except Exception as fault:
            sink = self._sink.name
            raise NotDelivered(
                f"entry {plan.sequence} stands, but {sink} did not take all of its records",
                where=self._site.pipeline.name,
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
                where=self._site.pipeline.name,
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
            error = translate(fault, self._site.pipeline.name)
            raise NotSent(
                f"{self._sink.name} did not take all records of {_listed(plan)}",
                where=self._site.pipeline.name,
                found=f"{error.code} {error.found or error.what}",
                passes=error.passes,
            ) from fault
        self._sent = plan.draft.ranges
        debug.step(plan.draft.pipeline, "sent", commit=plan.commit)
        reach("P15")


def _listed(plan: CommitPlan) -> str:
    return ", ".join(map(str, plan.draft.ranges))
