"""Trying a pipeline again, in the same process, while what ended it may pass by itself.

To try again is what the next run would do: open the pipeline anew, from what its ledger says.
So nothing that failed is remembered, and nothing has to be undone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from rivermouth import debug
from rivermouth.config import OnDataLoss, Pipeline
from rivermouth.errors import Passing, RetentionLost, RivermouthError, as_ours
from rivermouth.run.report import (
    CommitReport,
    Listener,
    OpenReport,
    PassingOn,
    PipelineReport,
    RetryReport,
)
from rivermouth.source.batches import Stop
from rivermouth.warehouse.lake.retry_notes import Retrying, RetryNotes


class Supervision(PassingOn):
    """One pipeline in one run. Hears what it does, passes that on to ``listener``, and adds it up.

    ``pauses`` gives the seconds between failures in a row, and ends when the time for them is up;
    ``stop`` ends a pause. Opening and reading have this time each: a batch that fails each time
    does not get more of it by each opening that succeeds.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        listener: Listener,
        stop: Stop,
        pauses: Callable[[], Iterator[float]],
    ) -> None:
        super().__init__(listener)
        self.stop = stop
        self.report = PipelineReport(pipeline.name, 0, 0, 0, 0, 0.0)
        """What the pipeline has done so far."""
        self._pipeline = pipeline
        self._opening, self._reading = _Patience(pauses), _Patience(pauses)
        self._open = self._worked = self._made_a_batch = False

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
                error = as_error(fault, self._pipeline.name)
                if not self._waited(error):
                    raise error from error.__cause__

    def trigger_ended(self) -> None:
        """A trigger has come to its end: the time begins anew."""
        self._reading.begin_anew()

    def opened(self, report: OpenReport) -> None:
        self._open = self._worked = True
        self._opening.begin_anew()
        self.report = replace(self.report, sequence=report.sequence)
        super().opened(report)

    def committed(self, report: CommitReport) -> None:
        if self._open:
            self._made_a_batch = True
            self.trigger_ended()
        done, moves = self.report, any(each.span for each in report.ranges)
        self.report = replace(
            done,
            sequence=report.sequence,
            commits=done.commits + moves,
            applied=done.applied + report.applied,
            quarantined=done.quarantined + report.quarantined,
            skipped=done.skipped + report.skipped,
        )
        super().committed(report)

    def tries_again(self, report: RetryReport) -> None:
        self.report = replace(self.report, retries=self.report.retries + 1)
        super().tries_again(report)

    def _waited(self, error: RivermouthError) -> bool:
        """Wait, where it may pass; whether to try again after that."""
        if self.stop.is_set() or not self._may_pass(error):
            return False
        patience = self._reading if self._open else self._opening
        pause_s = patience.next_pause()
        if pause_s is None:
            return False
        debug.step(self._pipeline.ledger_name, "halt", code=error.code)
        self.tries_again(RetryReport(self._pipeline.name, error, pause_s, patience.tries))
        return not self.stop.wait(pause_s)

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


class GivingWay:
    """A stop; while a pipeline waits for it, another one has its turn: it may be a long time."""

    def __init__(self, stop: Stop, turns: threading.Semaphore) -> None:
        self._stop = stop
        self._turns = turns

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float) -> bool:
        self._turns.release()
        try:
            return self._stop.wait(timeout)
        finally:
            self._turns.acquire()


def as_error(fault: BaseException, pipeline: str) -> RivermouthError:
    """What a pipeline ended with, as an error of ours."""
    if isinstance(fault, RivermouthError):
        return fault
    from rivermouth.spark.errors import FAULTS, translate

    if not isinstance(fault, (*FAULTS, ImportError)):
        return as_ours(fault, pipeline)  # a defect of ours is one pipeline's, not the run's
    error = translate(fault, pipeline)
    error.__cause__ = fault
    return error


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
