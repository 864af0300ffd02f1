"""One pipeline in one run: the order of the rooms, and nothing else.

Opened once (read facts, assess them, act on that), then fed micro-batches: guards, relation to
the ledger, decoding, landing, committing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rivermouth.config import Pipeline
from rivermouth.debug import reach
from rivermouth.errors import OffsetsUnreadable, ProjectionFailed
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import assess_by, facts_of, with_topics
from rivermouth.protocol.accept_changes import Offsets, ResumePlan
from rivermouth.protocol.batches import misplaced, waiting_after
from rivermouth.protocol.commits import CommitPlan, Purpose, Recorded
from rivermouth.protocol.drafts import next_draft, renewed
from rivermouth.protocol.guards import (
    check_not_truncated,
    check_partition,
    check_source,
    to_ask_about,
)
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import next_offsets
from rivermouth.protocol.ways import Way
from rivermouth.run.accepting import check_no_other_rollback, plan_resume
from rivermouth.run.committer import Committer, Coordinates
from rivermouth.run.report import OpenReport
from rivermouth.run.steps import Steps
from rivermouth.warehouse.ledger import Others, audit_ledger, read_ledger, with_others
from rivermouth.warehouse.ports import OffsetsTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rivermouth.write.landing import Landing


@dataclass(frozen=True)
class Edges:
    """What a pipeline that reads works with."""

    at: Coordinates
    kafka: Kafka
    landing: Landing
    decode: Callable[[DataFrame], DataFrame]
    others: Others
    added: tuple[str, ...] = ()
    """The columns that the table has got, with their types."""
    way: Callable[[], Way | None] = lambda: None
    """How commits are made now; None: on this platform there is no choice."""
    now: Callable[[], float] = time.time


class Ingest:
    """What may be done to one pipeline: open it, feed it, accept what halted it."""

    def __init__(self, edges: Edges) -> None:
        self.pipeline: Pipeline = edges.at.pipeline
        self._edges = edges
        self._facts = KafkaFacts("", {}, {})
        self._table = ""
        self._committer: Committer | None = None

    def open(self, *, audit: bool = False) -> Position:
        """Act on what ``assess`` says, and return the next offset to read of each partition.

        The table exists and is ours to write. Brings the offsets table up to date, and writes the
        entry that is due: newly discovered partitions, a loss to record, or a heartbeat.
        ``audit``: all entries in the log are checked, not only those at its end.
        Raises a Halt before any write.
        """
        reach("P0")
        edges = self._edges
        ledger = self._read(audit_ledger if audit else read_ledger)
        _note_rollback(ledger, edges.at.store.offsets, self.pipeline.ledger_name)
        self._facts = facts_of(edges.kafka, self.pipeline)
        now_s = edges.now()
        found = assess_by(edges.kafka, self._facts, ledger, self.pipeline, now_s)
        if found.halt is not None:
            raise found.halt
        committer = self._begin(ledger, found.to_project)
        reach("P10")
        if found.opening is not None:
            plan = committer.plan(found.opening.purpose, found.opening.draft)
            committer.record(plan, partial(self._check_kafka, plan.draft.ranges))
        report = OpenReport.of(self.pipeline, found, self._facts, edges.way())
        edges.at.listener.opened(replace(report, added=edges.added))
        return found.starts

    def batch(
        self,
        raw: DataFrame,
        ranges: Sequence[OffsetRange],
        was_read: Callable[[], object] = lambda: None,
    ) -> None:
        """Commit one micro-batch of raw Kafka rows that covers exactly ``ranges``.

        ``was_read`` is called once its records will hardly be read again: only the commit is left.
        """
        committer = self._opened()
        halt = misplaced(self.pipeline.name, ranges, committer.history.newest)
        # Where Spark reads a range in several parts, one may be given records that another one has
        # fetched in advance, also one that reads after an answer: so Kafka is asked before.
        beside = halt is None and bool(ranges) and not self.pipeline.source.in_parts
        check: Callable[[], object] = _nothing if beside else partial(self._check_kafka, ranges)
        check()
        reach("P2")
        if halt is not None:
            raise halt
        if not ranges:
            return
        history = committer.history
        draft = next_draft(history, self._table, self.pipeline, self._facts, tuple(ranges))
        plan = committer.plan(Purpose.BATCH, draft, beside=beside)
        waiting = waiting_after(ranges, plan.draft.ends.offsets)
        if waiting >= self.pipeline.source.max_offsets_per_trigger:
            was_read()  # who plans the next batch now finds as much for it as later
        from rivermouth.write.landing import RawBatch

        stage = partial(self._edges.landing.stage, RawBatch(raw, self._edges.decode))
        steps = Steps(stage, self._guard if beside else None, was_read)
        committer.commit(plan, steps, check)

    def resume(
        self,
        accept: str,
        offsets: Offsets | None = None,
        agree: Callable[[ResumePlan], bool] = lambda plan: True,
    ) -> Position:
        """Write an entry that accepts what happened; return where the pipeline goes on.

        See ``plan_resume``. Where ``agree`` refuses the plan, nothing is written.
        """
        ledger = self._read(read_ledger)
        found = plan_resume(ledger, self._edges.kafka, self.pipeline, accept, offsets)
        if not agree(found):
            return found.draft.position
        missing = [each for each in ledger.entries if each.entry.sequence > ledger.projected]
        committer = self._begin(ledger, missing, accept=accept)
        plan = committer.plan(Purpose.RESUME, found.draft)
        log = self._edges.at.store.log
        committer.record(plan, lambda: check_no_other_rollback(committer.history, log))
        return found.draft.position

    def waiting(self, starts: Position) -> bool:
        """Whether there was something to read behind ``starts`` when the pipeline was opened."""
        marks = self._facts.watermarks
        return any(
            each not in marks or marks[each].high != offset
            for each, offset in starts.offsets.items()
        )

    def watermarks(self, position: Position) -> Mapping[TopicPartition, Watermarks]:
        """What Kafka holds now of the topics. Raises the Halt that applies where it no longer
        holds what ``position`` says: no batch looks while there is nothing to read.
        """
        topics = self.pipeline.source.topics
        facts = self._edges.kafka.facts(topics).of(topics)
        self._check_source(facts.cluster, facts.topics)
        for each, offset in next_offsets(position, facts).items():
            check_partition(self.pipeline.name, each, offset, facts.watermarks.get(each))
        return facts.watermarks

    def _read(self, read: Callable[..., LedgerSnapshot]) -> LedgerSnapshot:
        """The ledger; the topics that a pattern matches are those that Kafka tells after it."""
        edges = self._edges
        ledger = read(edges.at.store, self.pipeline, edges.others)
        if not self.pipeline.source.topics.pattern:
            return ledger
        self.pipeline = with_topics(edges.kafka, self.pipeline, ledger.newest)
        return with_others(ledger, self.pipeline, edges.others)

    def _begin(
        self, ledger: LedgerSnapshot, to_project: Sequence[Recorded], **accepting: object
    ) -> Committer:
        self._table = ledger.table
        self._committer = Committer.opened(ledger, self._edges.at, to_project, **accepting)
        return self._committer

    def _opened(self) -> Committer:
        if self._committer is None:
            raise RuntimeError("open() comes before batch()")
        return self._committer

    def _check_kafka(self, ranges: Sequence[OffsetRange]) -> KafkaFacts:
        """The guards of a batch: topics and logs are those that the ledger's offsets belong to.
        Returns what Kafka says now; the next draft goes by it, too.
        """
        kafka, history = self._edges.kafka, self._opened().history
        topics = self.pipeline.source.topics
        self._check_source(*kafka.identities(topics))
        # A topic that was taken out keeps its position; it may be gone.
        known = {*history.position, *(each.topic_partition for each in ranges)}
        partitions = {each for each in known if topics.reads(each.topic, each.partition)}
        self._facts = replace(self._facts, ends=kafka.ends(partitions))
        truncated = kafka.truncated_logs(to_ask_about(history.newest, self._facts.epochs))
        check_not_truncated(self.pipeline.name, history.newest, truncated)
        return self._facts

    def _guard(self, plan: CommitPlan) -> CommitPlan:
        """The guards of a batch, asked while it is staged."""
        said = self._check_kafka(plan.draft.ranges)
        return replace(plan, draft=renewed(plan.draft, self._opened().history.newest, said))

    def _check_source(self, cluster: str, topics: Mapping[str, str]) -> None:
        newest = self._opened().history.newest
        if newest is not None:
            check_source(self.pipeline.name, newest, cluster, topics)


def _note_rollback(ledger: LedgerSnapshot, offsets: OffsetsTable, name: str) -> None:
    """Note in the offsets table that entries were rolled back: the log may forget it."""
    since = ledger.history.rolled_back_since
    if since is not None:
        # The halt says more than a note that cannot be made.
        with suppress(ProjectionFailed, OffsetsUnreadable):
            offsets.note_rollback(name, since)


def _nothing() -> None:
    """No guard before a batch: it is asked beside its reading, at each attempt."""
