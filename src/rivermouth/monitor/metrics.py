"""The figures of a run, by the names that dashboards know, for whatever collects them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.report import CommitReport, Listener, PassingOn, PipelineReport, RetryReport


class Kind(Enum):
    """How the values of a figure add up."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Figure:
    """A figure: its name without ``rivermouth_``, what it counts, and its labels."""

    name: str
    kind: Kind
    what: str
    labels: tuple[str, ...] = ("pipeline",)


COUNTER, GAUGE, HISTOGRAM = Kind
RECORDS = Figure(
    "records",
    COUNTER,
    "Records committed: applied, quarantined, or skipped since they make no row.",
    ("pipeline", "outcome"),
)
OFFSETS = Figure("offsets", COUNTER, "Offsets that commits covered.")
COMMITS = Figure("commits", COUNTER, "Commits.")
COMMIT_SECONDS = Figure("commit_seconds", HISTOGRAM, "Seconds of a batch, from plan to commit.")
RETRIES = Figure("retries", COUNTER, "Times that a batch failed and was tried again.")
FAILURES = Figure("failures", COUNTER, "Pipelines that ended with an error.", ("pipeline", "code"))
LAST_COMMIT = Figure(
    "last_commit_timestamp_seconds", GAUGE, "When the newest entry was committed, since 1970."
)
LAG_RECORDS = Figure(
    "lag_records", GAUGE, "Offsets up to the last stable one: an upper bound of the records."
)
LAG_SECONDS = Figure(
    "lag_seconds", GAUGE, "Age of the newest committed record; 0 where no record waits."
)
RETENTION = Figure(
    "retention_headroom_seconds", GAUGE, "Seconds until Kafka may delete a record that waits."
)
STATE = Figure("state", GAUGE, "1 for the state that holds, else 0.", ("pipeline", "state"))
FIGURES = (
    RECORDS,
    OFFSETS,
    COMMITS,
    COMMIT_SECONDS,
    RETRIES,
    FAILURES,
    LAST_COMMIT,
    LAG_RECORDS,
    LAG_SECONDS,
    RETENTION,
    STATE,
)
BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of the histogram."""
Labels = Mapping[str, str]


class Meter(Protocol):
    """What keeps the values of figures."""

    def put(self, figure: Figure, value: float, labels: Labels) -> None:
        """Add to a counter, set a gauge, or observe for a histogram."""

    def forget(self, figure: Figure, labels: Labels) -> None:
        """A gauge has no value any more: nobody knows it."""

    def close(self) -> None:
        """The run is over: what is to be sent or written is, now."""


class Measured(PassingOn):
    """Passes all on to ``listener``, and puts figures into a meter. Called from several threads."""

    def __init__(self, listener: Listener, meter: Meter) -> None:
        super().__init__(listener)
        self._meter = meter

    def committed(self, report: CommitReport) -> None:
        super().committed(report)
        of = {"pipeline": report.pipeline}
        counts = {
            "applied": report.applied,
            "quarantined": report.quarantined,
            "skipped": report.skipped,
        }
        for outcome, number in counts.items():
            self._meter.put(RECORDS, number, {**of, "outcome": outcome})
        self._meter.put(OFFSETS, sum(each.span for each in report.ranges), of)
        self._meter.put(COMMITS, 1, of)
        self._meter.put(COMMIT_SECONDS, report.seconds, of)

    def tries_again(self, report: RetryReport) -> None:
        super().tries_again(report)
        self._meter.put(RETRIES, 1, {"pipeline": report.pipeline})

    def finished(self, report: PipelineReport) -> None:
        super().finished(report)
        if report.error is not None:
            of = {"pipeline": report.pipeline, "code": report.error.code}
            self._meter.put(FAILURES, 1, of)

    def seen(self, found: Status) -> None:
        """Put what ``status`` tells."""
        for each in found.pipelines:
            for figure, value in _gauges(each).items():
                if value is None:
                    self._meter.forget(figure, {"pipeline": each.name})
                else:
                    self._meter.put(figure, value, {"pipeline": each.name})
            for state in State:
                of = {"pipeline": each.name, "state": state.value}
                self._meter.put(STATE, int(state is each.state), of)


def _gauges(each: PipelineStatus) -> dict[Figure, float | None]:
    steps = each.pace.steps
    return {
        LAST_COMMIT: steps[-1].at_ms / 1000 if steps else None,
        LAG_RECORDS: each.lag_messages,
        LAG_SECONDS: each.lag_seconds,
        RETENTION: each.waiting.left.seconds if each.waiting is not None else None,
    }
