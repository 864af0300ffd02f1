"""What a run tells a log: a line for each event, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import IO, Any

from rich.console import Console

from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.report import (
    CommitReport,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
)
from rivermouth.run.text import duration, failure, number, wrapped

INFO, WARNING, ERROR = "info", "warning", "error"
_FINE = (State.OK, State.NEW, State.CATCHING_UP)
_EVERY_S = 60.0


@dataclass(frozen=True)
class Line:
    """An event of a pipeline: ``text`` for people, ``facts`` for machines."""

    event: str
    pipeline: str
    text: str
    facts: Mapping[str, Any]
    level: str = INFO


Say = Callable[[Line], None]
"""Writes a line at once."""


def as_text(console: Console) -> Say:
    """Lines for people, folded at 80 columns; several for a failure."""

    def say(line: Line) -> None:
        text = line.text if "\n" in line.text else wrapped(line.text, "  ", "")
        console.print(text, soft_wrap=True)

    return say


def as_json_lines(stream: IO[str], now: Callable[[], float] = time.time) -> Say:
    """A JSON object a line: ``time`` in UTC, ``level``, ``event``, ``pipeline``, and the facts."""
    lock = threading.Lock()

    def say(line: Line) -> None:
        moment = datetime.fromtimestamp(now(), timezone.utc).isoformat(timespec="milliseconds")
        told = {"time": moment.replace("+00:00", "Z"), "level": line.level, "event": line.event}
        text = json.dumps({**told, "pipeline": line.pipeline, **line.facts}, default=str)
        with lock:
            stream.write(f"{text}\n")
            stream.flush()

    return say


class Lines:
    """A listener that says each event at once. What ended well, the summary at the end tells."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def opened(self, report: OpenReport) -> None:
        facts = {"sequence": report.sequence, "offsets_behind": report.behind}
        self._say(Line("opened", report.pipeline, report.line(), facts))

    def committed(self, report: CommitReport) -> None:
        facts = {
            "sequence": report.sequence,
            "table_version": report.table_version,
            "offsets": sum(each.span for each in report.ranges),
            "applied": report.applied,
            "quarantined": report.quarantined,
            "skipped": report.skipped,
            "seconds": round(report.seconds, 3),
            "ranges": [each.as_dict() for each in report.ranges if each.span],
        }
        self._say(Line("committed", report.pipeline, report.line(), facts))

    def tries_again(self, report: RetryReport) -> None:
        facts = {
            "tries": report.tries,
            "pause_seconds": round(report.pause_s, 3),
            "error": report.error.as_dict(),
        }
        self._say(Line("tries_again", report.pipeline, report.line(), facts, WARNING))

    def not_mirrored(self, report: MirrorReport) -> None:
        facts = {"group": report.group, "error": report.error.as_dict()}
        text = report.line()
        self._say(Line("not_mirrored", ", ".join(report.pipelines), text, facts, WARNING))

    def finished(self, report: PipelineReport) -> None:
        if report.error is not None:
            text = failure(report.pipeline, report.error, report.retries)
            self._say(Line("failed", report.pipeline, text, report.as_dict(), ERROR))


@dataclass
class _Sums:
    """What one pipeline did since it was told last."""

    since: float
    counts: Counter[str] = field(default_factory=Counter)


class Minutes(Lines):
    """One that says sums once a minute in place of single commits, and each change of state.

    For a run without end: a line for each commit of ten pipelines is 860,000 lines a day.
    """

    def __init__(self, say: Say, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(say)
        self._now = now
        self._sums: dict[str, _Sums] = {}
        self._states: dict[str, State] = {}
        self._lock = threading.Lock()

    def committed(self, report: CommitReport) -> None:
        with self._lock:
            sums = self._sums.setdefault(report.pipeline, _Sums(self._now()))
            sums.counts.update(
                commits=1,
                offsets=sum(each.span for each in report.ranges),
                applied=report.applied,
                quarantined=report.quarantined,
                skipped=report.skipped,
            )

    def seen(self, found: Status) -> None:
        """Say which states changed, and the sums of those that were not told for a minute."""
        for each in found.pipelines:
            former = self._states.get(each.name, State.OK)
            self._states[each.name] = each.state
            if each.state is not former:
                self._say(_changed(each, former))
            with self._lock:
                sums = self._sums.get(each.name)
                due = sums is not None and self._now() - sums.since >= _EVERY_S
                if due:
                    del self._sums[each.name]
            if sums is not None and due:
                self._say(_summed(each, sums.counts, self._now() - sums.since))


def _changed(each: PipelineStatus, former: State) -> Line:
    text = f"{each.name}: {each.state.value}, was {former.value}"
    text += f": {each.reason}" if each.reason else ""
    facts = {"state": each.state.value, "former": former.value, "reason": each.reason}
    level = INFO if each.state in _FINE else WARNING
    return Line("state", each.name, text, {**facts, **_lag(each)}, level)


def _summed(each: PipelineStatus, counts: Counter[str], took_s: float) -> Line:
    told = [f"{counts['commits']:,} commits", f"{counts['applied']:,} records"]
    told += [f"{counts[name]:,} {name}" for name in ("quarantined", "skipped") if counts[name]]
    told.append(f"in {took_s:.0f} s; lag {number(each.lag_messages)} offsets")
    text = f"{each.name}: {', '.join(told[:-1])} {told[-1]}"
    text += f", {duration(each.lag_seconds)}" if each.lag_seconds else ""
    facts = {**counts, "seconds": round(took_s, 3), "state": each.state.value, **_lag(each)}
    return Line("minute", each.name, text, facts)


def _lag(each: PipelineStatus) -> dict[str, float | None]:
    return {"lag_records": each.lag_messages, "lag_seconds": each.lag_seconds}
