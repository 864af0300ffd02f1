"""A listener that leaves a note of each pipeline that is tried again, see ``RetryNotes``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rivermouth.config import Config
from rivermouth.run.report import Listener, OpenReport, PassingOn, PipelineReport, RetryReport
from rivermouth.warehouse.folder.retrying import Retrying, RetryNotes


def noting(listener: Listener, config: Config) -> Listener:
    """The listener of a run, which leaves notes where its tables lie in a folder."""
    warehouse = config.warehouse
    return Noting(listener, RetryNotes(warehouse)) if isinstance(warehouse, Path) else listener


class Noting(PassingOn):
    """Passes all on to ``listener``. A note goes once its pipeline is open again, or has ended.

    Whoever never opened a pipeline leaves the note of the run that has it.
    """

    def __init__(
        self, listener: Listener, notes: RetryNotes, now: Callable[[], float] = time.time
    ) -> None:
        super().__init__(listener)
        self._notes = notes
        self._now = now
        self._since_ms: dict[str, int] = {}
        self._ours: set[str] = set()

    def opened(self, report: OpenReport) -> None:
        self._ours.add(report.pipeline)
        self._notes.remove(report.pipeline)
        super().opened(report)

    def tries_again(self, report: RetryReport) -> None:
        name, now_ms = report.pipeline, int(self._now() * 1000)
        if report.tries == 1:
            self._since_ms[name] = now_ms
        since_ms = self._since_ms.get(name, now_ms)
        self._ours.add(name)
        self._notes.write(name, Retrying(since_ms, now_ms, report.tries, str(report.error)))
        super().tries_again(report)

    def finished(self, report: PipelineReport) -> None:
        if report.pipeline in self._ours:
            self._notes.remove(report.pipeline)
        super().finished(report)
