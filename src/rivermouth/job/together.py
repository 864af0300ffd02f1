"""A continuous job ends as a whole once one of its pipelines has given up, so that it is run again.

A job of Databricks is run again when its task fails, and a task fails when its process ends. A
process that lives on without one of its pipelines would hide that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rivermouth.errors import Halt
from rivermouth.run.report import Listener, PassingOn, PipelineReport

_ENDING = "{}: gave up; the other pipelines end after their current batch, so that the job fails"


class Together(PassingOn):
    """Passes on what it hears; sets ``stop`` once a pipeline has given up.

    After a Halt the others go on: a person has to act, and to run the job again would only keep
    interrupting them. ``say`` prints a line.
    """

    def __init__(
        self, listener: Listener, stop: threading.Event, say: Callable[[str], object]
    ) -> None:
        super().__init__(listener)
        self._stop = stop
        self._say = say

    def finished(self, report: PipelineReport) -> None:
        super().finished(report)
        gave_up = report.error is not None and not isinstance(report.error, Halt)
        if gave_up and not self._stop.is_set():
            self._say(_ENDING.format(report.pipeline))
            self._stop.set()
