"""Trying a pipeline again, in the same process, while what ended it may pass by itself.

To try again is what the next run would do: open the pipeline anew, from what its ledger says.
So nothing that failed is remembered, and nothing has to be undone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rivermouth import debug
from rivermouth.config import Config, OnDataLoss, Pipeline
from rivermouth.errors import Passing, RetentionLost, RivermouthError, as_ours
from rivermouth.run.report import (
    CommitReport,
    Listener,
    OpenReport,
    PassingOn,
    PipelineReport,
    RetryReport,
)
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.warehouse.folder.retry_notes import Retrying, RetryNotes
from rivermouth.warehouse.ports import Attempts


class Supervision(PassingOn):
    """One pipeline in one run. Hears what it does, and passes that on to ``listener``.

    ``attempts`` says for how long in a row it may fail, and waits. Opening and reading have this
    time each: a batch that fails each time does not get more of it by each opening that succeeds.
    """

    def __init__(
        self, pipeline: Pipeline, listener: Listener, stop: threading.Event, attempts: Attempts
    ) -> None:
        self._pipeline = pipeline
        super().__init__(listener)
        self._stop = stop
        self._pause = attempts.pause
        self._opening = _Patience(attempts.pauses)
        self._reading = _Patience(attempts.pauses)
        self._open = self._worked = self._made_a_batch = False
        self.again = False
        """Whether this is not the first attempt."""

    def run(self, attempt: Callable[[], object]) -> None:
        """Open the pipeline and read, again and again, until that ends well.

        Raises the last error where it is one that stays, where the time is up, or where the run
        is to stop.
        """
        while True:
            self._open = False
            try:
                attempt()
                return
            except Exception as fault:
                error = told(fault, self._pipeline.name)
                if not self._waited(error):
                    raise error from error.__cause__
            self.again = True

    def went_well(self) -> None:
        """A trigger has come to its end: the time begins anew."""
        self._reading.begin_anew()

    def opened(self, report: OpenReport) -> None:
        self._open = self._worked = True
        self._opening.begin_anew()
        super().opened(report)

    def committed(self, report: CommitReport) -> None:
        if self._open:
            self._made_a_batch = True
            self.went_well()
        super().committed(report)

    def _waited(self, error: RivermouthError) -> bool:
        """Wait, where it may pass; whether to try again after that."""
        if self._stop.is_set() or not self._may_pass(error):
            return False
        patience = self._reading if self._open else self._opening
        pause_s = patience.next_pause()
        if pause_s is None:
            return False
        debug.step(self._pipeline.ledger_name, "halt", code=error.code)
        self.tries_again(RetryReport(self._pipeline.name, error, pause_s, patience.tries))
        return not self._pause(pause_s)

    def _may_pass(self, error: RivermouthError) -> bool:
        if isinstance(error, RetentionLost):  # an opening records the loss, where that is asked for
            return self._open and self._pipeline.source.on_data_loss is OnDataLoss.RECORD
        return {
            Passing.NO: False,
            Passing.IF_A_BATCH_WORKED: self._made_a_batch,
            Passing.IF_IT_WORKED: self._worked,
            Passing.YES: True,
        }[error.passes]


class _Patience:
    """For how long in a row something may fail: the pauses between, and then no other."""

    def __init__(self, pauses: Callable[[], Iterator[float]]) -> None:
        self._pauses = pauses
        self._left: Iterator[float] | None = None
        self.tries = 0
        """How often in a row."""

    def next_pause(self) -> float | None:
        """Seconds to wait now; None: the time is up. The first question begins it."""
        if self._left is None:
            self._left, self.tries = self._pauses(), 0
        self.tries += 1
        return next(self._left, None)

    def begin_anew(self) -> None:
        self._left = None


def giving_way(
    turns: threading.Semaphore, pause: Callable[[float], bool | None]
) -> Callable[[float], bool | None]:
    """The pause, in which another pipeline has the turn of this one: it may be a long one."""

    def waited(seconds: float) -> bool | None:
        turns.release()
        try:
            return pause(seconds)
        finally:
            turns.acquire()

    return waited


def told(fault: BaseException, pipeline: str) -> RivermouthError:
    """What a pipeline ended with, as an error of ours."""
    if not isinstance(fault, (*FAULTS, ImportError)):
        return as_ours(fault, pipeline)  # a defect of ours is one pipeline's, not the run's
    error = translate(fault, pipeline)
    error.__cause__ = fault
    return error


def with_retry_notes(listener: Listener, config: Config) -> Listener:
    """The listener of a run, which leaves notes where its tables lie in a folder."""
    warehouse = config.warehouse
    return (
        RetryNoteListener(listener, RetryNotes(warehouse))
        if isinstance(warehouse, Path)
        else listener
    )


class RetryNoteListener(PassingOn):
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
