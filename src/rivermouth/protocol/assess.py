"""What a run would do with a pipeline now: from facts to one value. Pure.

Opening a run acts on the ``Assessment``; ``status`` and ``maintain`` render it or act on their
part. So none of them can say anything else than a run would do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rivermouth.config import Pipeline
from rivermouth.errors import Halt
from rivermouth.protocol.commits import Purpose, Recorded
from rivermouth.protocol.drafts import assigned_now, here, next_draft
from rivermouth.protocol.entry import Draft
from rivermouth.protocol.guards import (
    check_alone,
    check_identity,
    check_ledger,
    check_not_truncated,
)
from rivermouth.protocol.kafka_facts import KafkaFacts, behind
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import Starts, discovered, start_positions, vanished


class State(Enum):
    """What a run would do first."""

    NEW = "new"
    """Nothing has been committed yet: it records where the partitions start."""
    RESUMES = "resumes"
    """It goes on after the newest entry."""
    HALTS = "halts"
    """A guard would stop it before it writes."""


@dataclass(frozen=True)
class Opening:
    """An entry that a run writes before it reads anything."""

    purpose: Purpose
    draft: Draft


@dataclass(frozen=True)
class Assessment:
    """What a run would do with a pipeline now.

    ``halt`` is what would stop it; then nothing below applies. ``starts`` is the next
    offset to read of every partition that exists, ``lost`` what Kafka deleted before that was
    read. ``discovered`` are partitions to record, ``opening`` the entry that a run writes first,
    if it owes one. ``to_project`` are entries that the offsets table lacks. ``behind`` and
    ``held_back`` are in offsets, see ``KafkaFacts``. ``vanished`` are topics of a pattern that
    Kafka no longer has, of which all was read that the newest entry knew of. All that Kafka tells
    is empty where it was not asked.
    """

    ledger: LedgerSnapshot
    halt: Halt | None = None
    starts: Position = field(default_factory=Position)
    lost: tuple[OffsetRange, ...] = ()
    discovered: tuple[OffsetRange, ...] = ()
    opening: Opening | None = None
    to_project: tuple[Recorded, ...] = ()
    behind: int = 0
    held_back: int = 0
    vanished: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """What a run would do first."""
        if self.halt is not None:
            return State.HALTS
        return State.NEW if self.ledger.newest is None else State.RESUMES


def assess(
    ledger: LedgerSnapshot, kafka: KafkaFacts | None, pipeline: Pipeline, now_s: float
) -> Assessment:
    """What a run would do now. ``kafka`` None: Kafka was not asked, its guards are left out.

    ``now_s`` is the time in seconds since 1970.
    """
    try:
        _check(ledger, kafka, pipeline)
        starts = Starts(Position())
        if kafka is not None:
            starts = start_positions(pipeline, ledger.newest, kafka)
            check_not_truncated(pipeline.name, ledger.newest, kafka.truncated)
    except Halt as halt:
        return Assessment(ledger, halt=halt)
    found = discovered(starts, ledger.newest)
    return Assessment(
        ledger=ledger,
        starts=starts.position,
        lost=starts.lost,
        discovered=found,
        opening=_opening(ledger, kafka, pipeline, (*found, *starts.lost), starts.lost, now_s),
        to_project=tuple(each for each in ledger.entries if each.entry.sequence > ledger.projected),
        behind=behind(starts.position, kafka.watermarks) if kafka is not None else 0,
        held_back=sum(kafka.held_back.values()) if kafka is not None else 0,
        vanished=vanished(pipeline, ledger.newest) if kafka is not None else (),
    )


def _check(ledger: LedgerSnapshot, kafka: KafkaFacts | None, pipeline: Pipeline) -> None:
    """Raise the Halt that applies to ledger, table, settings and neighbours."""
    ledger.check_not_trimmed()
    check_ledger(ledger.history, ledger.txn, ledger.projected, forgotten=ledger.forgotten)
    where, newest = ledger.history.where, ledger.newest
    if newest is not None:
        check_identity(where, newest, ledger.table, pipeline.identity)
    if kafka is not None:
        check_alone(where, ledger.others, newest, kafka)


def _opening(
    ledger: LedgerSnapshot,
    kafka: KafkaFacts | None,
    pipeline: Pipeline,
    ranges: tuple[OffsetRange, ...],
    lost: tuple[OffsetRange, ...],
    now_s: float,
) -> Opening | None:
    """The entry that is due: newly discovered partitions, a loss, or else a heartbeat."""
    newest = ledger.newest
    if kafka is None:
        return None
    # Which topics are read in part decides where later partitions begin, so it is recorded at once.
    marked = newest is not None and assigned_now(newest, kafka) != newest.assigned
    if not (ranges or marked or heartbeat_due(ledger, now_s)):
        return None
    purpose = Purpose.LOSS if lost else Purpose.DISCOVERY if ranges else Purpose.HEARTBEAT
    covered = ranges or here(ledger.history.position)
    draft = next_draft(ledger.history, ledger.table, pipeline, kafka, covered, lost)
    return Opening(purpose, draft)


def heartbeat_due(ledger: LedgerSnapshot, now_s: float) -> bool:
    """Whether the newest position is to be written again, before log clean-up takes its entry.

    An entry without ranges came from the offsets table: the log does not hold it.
    """
    newest = ledger.newest
    if newest is None:
        return False
    return ledger.is_old(now_s) or ledger.was_rolled_back or not newest.ranges
