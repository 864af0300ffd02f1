"""What a commit, a pipeline and a run did: as values, as JSON, as one line each. Pure."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rivermouth.errors import RivermouthError
from rivermouth.protocol.entry import RowCounts, topics_begun
from rivermouth.protocol.kafka_facts import is_told
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.starts import OVER, shown, start_is_over

if TYPE_CHECKING:
    from rivermouth.config import Pipeline
    from rivermouth.protocol.assess import Assessment
    from rivermouth.protocol.kafka_facts import KafkaFacts
    from rivermouth.protocol.ways import Way

_LOG = logging.getLogger(__name__)


def _others(quarantined: int, skipped: int) -> str:
    """``, 3 quarantined, 2 skipped``: those that there are, of the records that made no row."""
    them = {"quarantined": quarantined, "skipped": skipped}
    return "".join(f", {number:,} {what}" for what, number in them.items() if number)


@dataclass(frozen=True)
class CommitReport:
    """One commit of a pipeline. ``seconds`` is the whole batch, decoding to projection."""

    pipeline: str
    sequence: int
    table_version: int
    ranges: tuple[OffsetRange, ...]
    rows: tuple[RowCounts, ...]
    position: Position
    seconds: float

    @property
    def applied(self) -> int:
        return sum(each.applied for each in self.rows)

    @property
    def quarantined(self) -> int:
        return sum(each.quarantined for each in self.rows)

    @property
    def skipped(self) -> int:
        return sum(each.skipped for each in self.rows)

    def line(self) -> str:
        """``orders: entry 7, version 9: 1,200 records, 3 quarantined, 0.8 s``."""
        text = f"{self.pipeline}: entry {self.sequence}, version {self.table_version}: "
        if not any(each.span for each in self.ranges):
            return f"{text}{len(self.ranges)} position(s) recorded"
        text += f"{self.applied:,} records{_others(self.quarantined, self.skipped)}"
        return f"{text}, {self.seconds:.1f} s"


@dataclass(frozen=True)
class OpenReport:
    """Where a pipeline starts: what the ledger said, and what was found and decided."""

    pipeline: str
    sequence: int
    position: Position
    behind: int
    projected: int
    """Entries that the offsets table lacked: a driver died right after a commit."""
    lost: tuple[OffsetRange, ...] = ()
    """What Kafka had deleted before it was read, now recorded as lost."""
    held_back: int = 0
    """Offsets behind open transactions, which cannot be read before these end."""
    recovered: bool = False
    """Whether log clean-up had taken all entries, and the offsets table told the newest."""
    start_is_over: bool = False
    """Whether ``start`` is in the file, and has no effect any more."""
    without_id: tuple[str, ...] = ()
    """New topics of which the broker tells no id."""
    vanished: tuple[str, ...] = ()
    """Topics of a pattern that are gone; all was read that the newest entry knew of."""
    landing: str = ""
    """Why commits are made through Spark, in a clause; empty: they are not, or must be."""
    added: tuple[str, ...] = ()
    """Columns that the table has got, since the configuration has them, with their types."""

    @staticmethod
    def of(pipeline: Pipeline, found: Assessment, kafka: KafkaFacts, way: Way | None) -> OpenReport:
        """The report of a pipeline that opens as ``found`` says; ``kafka`` are the facts it knew.

        ``way`` is how its commits are made now.
        """
        ledger = found.ledger
        known = topics_begun(ledger.newest)
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
            without_id=tuple(
                topic
                for topic, each in kafka.topics.items()
                if topic not in known and not is_told(each)
            ),
            landing=str(way) if way is not None and way.reason else "",
        )

    def line(self) -> str:
        """``orders: resumes after entry 7, 48,800 offsets behind``."""
        start = f"resumes after entry {self.sequence}" if self.sequence else "first run"
        text = f"{self.pipeline}: {start}, {self.behind:,} offsets behind"
        if self.projected:
            text += f"; {self.projected} commit(s) of a dead driver found standing, kept"
        if self.lost:
            lost = sum(each.span for each in self.lost)
            text += f"; {lost:,} offsets LOST, deleted by Kafka before they were read: recorded"
        if self.held_back:
            text += f"; open transactions hold back {self.held_back:,} offsets"
        if self.recovered:
            text += "; log clean-up had taken the ledger, the offsets table gave it back"
        if self.without_id:
            text += f"; the broker tells no id of {', '.join(self.without_id)}: a topic that is"
            text += " deleted and created again is noticed only while it is shorter than before"
        if self.start_is_over:
            text += f"; {OVER}"
        if self.vanished:
            text += f"; {shown(self.vanished)}"
        if self.landing:
            text += f"; {self.landing}"
        if self.added:
            text += f"; added to the table: {', '.join(self.added)}"
        return text


@dataclass(frozen=True)
class RetryReport:
    """A pipeline failed with ``error``, which may pass; it is tried again after ``pause_s``.

    ``tries``: how often it has failed in a row.
    """

    pipeline: str
    error: RivermouthError
    pause_s: float
    tries: int = 1

    def line(self) -> str:
        """``orders: tried again in 0.8 s: RM301 k:9092: no broker answers; found …``."""
        error = self.error
        where = f" {error.where}:" if error.where else ""
        found = f"; found {error.found}" if error.found else ""
        what = f"{error.code}{where} {error.what}{found}"
        return f"{self.pipeline}: tried again in {self.pause_s:.1f} s: {what}"


@dataclass(frozen=True)
class MirrorReport:
    """A consumer group could not be written because of ``error``. The run goes on without it."""

    pipelines: tuple[str, ...]
    group: str
    error: RivermouthError

    def line(self) -> str:
        """``orders: the run goes on, but the group burrow is not written: RM303 …``."""
        names = ", ".join(self.pipelines)
        return f"{names}: the run goes on, but the group {self.group} is not written: {self.error}"


@dataclass(frozen=True)
class PipelineReport:
    """What one pipeline did in a run; ``error`` says why it stopped, if it had to.

    ``retries`` is how often it was tried again.
    """

    pipeline: str
    commits: int
    applied: int
    quarantined: int
    sequence: int
    seconds: float
    error: RivermouthError | None = None
    retries: int = 0
    skipped: int = 0

    def line(self) -> str:
        """One line for the end of a run."""
        if self.error is not None:
            return f"{self.pipeline}: FAILED {self.error}"
        text = f"{self.pipeline}: OK, {self.applied:,} records in {self.commits} commit(s)"
        text += _others(self.quarantined, self.skipped)
        return f"{text}, entry {self.sequence}, {self.seconds:.1f} s"

    def as_dict(self) -> dict[str, Any]:
        """The same facts for machines; ``error`` is null or its facts."""
        return {
            "name": self.pipeline,
            "ok": self.error is None,
            "commits": self.commits,
            "applied": self.applied,
            "quarantined": self.quarantined,
            "skipped": self.skipped,
            "sequence": self.sequence,
            "seconds": round(self.seconds, 3),
            "retries": self.retries,
            "error": self.error.as_dict() if self.error else None,
        }


class Ended(Protocol):
    """How something ended."""

    @property
    def error(self) -> RivermouthError | None:
        """Why not well; None where well."""


def exit_code(reports: Sequence[Ended]) -> int:
    """0 all went well; 5 some failed and others did not; else the code of the one failure.

    Where all failed for different reasons the code is 1.
    """
    codes = {each.error.exit_code for each in reports if each.error is not None}
    if not codes:
        return 0
    if any(each.error is None for each in reports):
        return 5
    return codes.pop() if len(codes) == 1 else 1


class Listener(Protocol):
    """Hears what a run does, while it does it. Called from several threads."""

    def opened(self, report: OpenReport) -> None:
        """A pipeline has passed its guards and is about to read."""

    def committed(self, report: CommitReport) -> None:
        """A commit stands."""

    def tries_again(self, report: RetryReport) -> None:
        """A pipeline has failed, and waits before it is opened again."""

    def not_mirrored(self, report: MirrorReport) -> None:
        """A group of ``mirror_group`` is not up to date. Said once for each group and cause."""

    def finished(self, report: PipelineReport) -> None:
        """A pipeline has ended, well or not."""


class Silent:
    """A listener where only the result matters; Python's log hears of what may take long."""

    def opened(self, report: OpenReport) -> None: ...

    def committed(self, report: CommitReport) -> None: ...

    def tries_again(self, report: RetryReport) -> None:
        _LOG.warning(report.line())

    def not_mirrored(self, report: MirrorReport) -> None:
        _LOG.warning(report.line())

    def finished(self, report: PipelineReport) -> None: ...


class PassingOn:
    """A listener that passes all on to ``listener``; what it adds, a subclass says."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def opened(self, report: OpenReport) -> None:
        self._listener.opened(report)

    def committed(self, report: CommitReport) -> None:
        self._listener.committed(report)

    def tries_again(self, report: RetryReport) -> None:
        self._listener.tries_again(report)

    def not_mirrored(self, report: MirrorReport) -> None:
        self._listener.not_mirrored(report)

    def finished(self, report: PipelineReport) -> None:
        self._listener.finished(report)
