"""What an opening tells: its listener and the trace what it found, the offsets table a rollback."""

from __future__ import annotations

from contextlib import suppress

from rivermouth import debug
from rivermouth.config import Pipeline
from rivermouth.errors import OffsetsUnreadable, ProjectionFailed
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.entry import topics_begun
from rivermouth.protocol.kafka_facts import KafkaFacts, is_told
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_is_over
from rivermouth.protocol.ways import Way
from rivermouth.run.report import OpenReport
from rivermouth.warehouse.ports import OffsetsTable

DELETES = "deletes"
"""What ``accept-deletes`` accepts, in a trace."""


def opened(pipeline: Pipeline, found: Assessment, kafka: KafkaFacts, way: Way | None) -> OpenReport:
    """The report of a pipeline that opens as ``found`` says; ``kafka`` are the facts it knew."""
    ledger = found.ledger
    known = topics_begun(ledger.newest)
    new = {topic: each for topic, each in kafka.topics.items() if topic not in known}
    return OpenReport(
        pipeline=pipeline.name,
        sequence=ledger.history.sequence,
        position=found.starts,
        behind=found.behind,
        projected=len(found.to_project),
        lost=found.lost,
        held_back=found.held_back,
        recovered=ledger.history.recovered is not None,
        start_is_over=start_is_over(pipeline, ledger.newest),
        vanished=found.vanished,
        without_id=tuple(topic for topic, each in new.items() if not is_told(each)),
        landing=str(way) if way is not None and way.reason else "",
    )


def trace_open(ledger: LedgerSnapshot, **asked: object) -> None:
    """Say in the trace what was read. ``asked``: of a command, what it was told to accept."""
    history = ledger.history
    debug.step(
        history.pipeline,
        "open",
        version=history.version,
        sequence=history.sequence,
        standing=history.effective.sequence if history.effective is not None else None,
        position=history.position.as_nested,
        projected=ledger.projected,
        **asked,
    )


def note_rollback(ledger: LedgerSnapshot, offsets: OffsetsTable, name: str) -> None:
    """Note in the offsets table that entries were rolled back: the log may forget it."""
    since = ledger.history.rolled_back_since
    if since is not None:
        # The halt says more than a note that cannot be made.
        with suppress(ProjectionFailed, OffsetsUnreadable):
            offsets.note_rollback(name, since)
