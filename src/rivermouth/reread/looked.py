"""What a replay has to know before it reads: the ledger, and what Kafka holds of its topics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.errors import ReplayRefused
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import assess_by, facts_of, with_topics
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.reread.asked import Bound, Known, asked_ranges, times_of
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.reading import audit_ledger


@dataclass(frozen=True)
class Looked:
    """One pipeline, with the topics that its pattern matches now; ``entries`` are in effect."""

    pipeline: Pipeline
    kafka: Kafka
    facts: KafkaFacts
    found: Assessment
    newest: Entry
    entries: Sequence[Recorded]

    @property
    def where(self) -> str:
        """Names the pipeline in messages."""
        return f"{self.pipeline.name} {self.pipeline.target.table}"

    @property
    def position(self) -> Position:
        """Where the pipeline stands in the partitions that it reads."""
        stands = self.newest.position.offsets.items()
        return Position({each: offset for each, offset in stands if self.facts.tell_of(each)})

    def asked(
        self, begin: Bound, end: Bound | None, begins: dict[TopicPartition, int]
    ) -> tuple[OffsetRange, ...]:
        """The ranges that are asked for; ``begins`` is where what may be read begins."""
        known = Known(self.position, begins)
        times = [times_of(each, known.position) if each else {} for each in (begin, end)]
        at_begin, at_end = (self.kafka.offsets_at(each) if each else {} for each in times)
        return asked_ranges(begin, end, known, at_begin, at_end)


def looked(pipeline: Pipeline, store: LedgerStore, kafka: Kafka) -> Looked:
    """All that a run would look at, and the whole log. Raises the Halt that a run would meet."""
    ledger = audit_ledger(store, pipeline)
    if ledger.newest is None and not ledger.history.faults:
        raise ReplayRefused(
            "the pipeline has read nothing yet",
            where=pipeline.name,
            found="no ledger entry",
            remedy="A run reads its topics: rivermouth run",
        )
    pipeline = with_topics(kafka, pipeline, ledger.newest)
    facts = facts_of(kafka, pipeline)
    found = assess_by(kafka, facts, ledger, pipeline, time.time())
    if found.halt is not None:
        raise found.halt
    if ledger.newest is None:
        raise RuntimeError("a ledger without an entry was assessed as sound")
    effective = ledger.history.effective_sequences()
    entries = [each for each in ledger.entries if each.entry.sequence in effective]
    return Looked(pipeline, kafka, facts, found, ledger.newest, entries)
