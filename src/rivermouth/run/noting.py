"""A listener that leaves a note of each pipeline that is tried again, see ``RetryNotes``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rivermouth.config import Config
from rivermouth.run.report import CommitReport, Listener, OpenReport, PipelineReport, RetryReport
from rivermouth.warehouse.folder.retrying import Retrying, RetryNotes


def noting(listener: Listener, config: Config) -> Listener:
    """The listener of a run, which leaves notes where its tables lie in a folder."""
    warehouse = config.warehouse
    return Noting(listener, RetryNotes(warehouse)) if isinstance(warehouse, Path) else listener


class Noting:
    """Passes all on to ``listener``. A note goes once its pipeline is open again, or has ended."""

    def __init__(
        self, listener: Listener, notes: RetryNotes, now: Callable[[], float] = time.time
    ) -> None:
        self._listener = listener
        self._notes = notes
        self._now = now
        self._left: dict[str, Retrying] = {}

    def opened(self, report: OpenReport) -> None:
        self._forget(report.pipeline)
        self._listener.opened(report)

    def committed(self, report: CommitReport) -> None:
        self._listener.committed(report)

    def tries_again(self, report: RetryReport) -> None:
        now_ms, before = int(self._now() * 1000), self._left.get(report.pipeline)
        since_ms, tries = (before.since_ms, before.tries + 1) if before else (now_ms, 1)
        note = Retrying(since_ms, now_ms, tries, str(report.error))
        self._left[report.pipeline] = note
        self._notes.write(report.pipeline, note)
        self._listener.tries_again(report)

    def finished(self, report: PipelineReport) -> None:
        self._forget(report.pipeline)
        self._listener.finished(report)

    def _forget(self, pipeline: str) -> None:
        """Also what a run left that was killed."""
        self._left.pop(pipeline, None)
        self._notes.remove(pipeline)
