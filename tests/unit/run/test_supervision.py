"""What passes is tried again in the same process; what stays, and a halt, are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from rivermouth.config import OnDataLoss
from rivermouth.errors import (
    BatchFailed,
    CommitConflict,
    CommitUnknown,
    KafkaRefused,
    KafkaUnreachable,
    KafkaUnsettled,
    MissingPackage,
    OffsetGap,
    Passing,
    RetentionLost,
    RivermouthError,
    TableLocked,
    TopicMissing,
    Unexpected,
)
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.run.ingest import Ingest
from rivermouth.run.report import CommitReport, OpenReport, PipelineReport, RetryReport, Silent
from rivermouth.run.supervision import Supervision
from rivermouth.source.driver_planned import DriverPlanned
from tests.builders import place, position, span
from tests.doubles import NO_SESSION, Crash, Heard, World, a_pipeline, edges, until_done

pytestmark = pytest.mark.unit

AWAY = KafkaUnreachable("no broker answers")
OPENED = OpenReport("orders", 3, position(5), 0, 0)
BATCH = CommitReport("orders", 4, 4, (span(5, 6),), (RowCounts(1, 0),), position(6), 0.1)
RECORDING = a_pipeline(on_data_loss=OnDataLoss.RECORD)


Step = Callable[[Supervision], object] | Exception | None


@dataclass
class Bench:
    """A supervision over attempts that are told one by one what happens in them."""

    pauses: tuple[float, ...] = (1, 2, 4)
    record: bool = False
    heard: Heard = field(default_factory=Heard)
    stopped: bool = False
    waited: list[float] = field(default_factory=list)
    attempts: int = 0

    def run(self, *attempts: tuple[Step, ...]) -> PipelineReport:
        """Each attempt is a row of steps; one that is an error ends it."""
        pipeline = RECORDING if self.record else a_pipeline()
        watch = Supervision(pipeline, self.heard, self, lambda: iter(self.pauses))
        rows = iter(attempts)

        def attempt() -> None:
            self.attempts += 1
            for step in next(rows):
                if isinstance(step, Exception):
                    raise step
                if step is not None:
                    step(watch)

        watch.run(attempt)
        return watch.report

    def is_set(self) -> bool:
        return self.stopped

    def wait(self, timeout: float) -> bool:
        self.waited.append(timeout)
        return self.stopped


def opens(watch: Supervision) -> None:
    watch.opened(OPENED)


def commits(watch: Supervision) -> None:
    watch.committed(BATCH)


def idles(watch: Supervision) -> None:
    watch.trigger_ended()


@pytest.mark.parametrize(
    "error", [AWAY, KafkaUnsettled("no leader"), CommitConflict("others")], ids=lambda e: e.code
)
def test_what_passes_is_tried_again_until_it_has_passed(error: RivermouthError) -> None:
    bench = Bench()
    report = bench.run((error,), (error,), (opens, commits))
    assert (report.retries, report.sequence, report.commits, report.applied) == (2, 4, 1, 1)
    assert (bench.attempts, bench.waited) == (3, [1, 2])
    assert [(each.error, each.pause_s) for each in bench.heard.retries] == [(error, 1), (error, 2)]
    assert [each.tries for each in bench.heard.retries] == [1, 2]
    assert bench.heard.opens == [OPENED]


@pytest.mark.parametrize(
    "error",
    [
        OffsetGap("a gap"),
        TableLocked("locked"),
        RetentionLost("lost"),
        KafkaRefused("no right"),
        BatchFailed("constraint", passes=Passing.NO),
        BatchFailed("full", found="IOException: No space left on device"),
    ],
    ids=lambda each: f"{each.code} {each.what}",
)
def test_what_stays_is_never_tried_again_not_even_where_it_worked(error: RivermouthError) -> None:
    for before in ((), (opens, commits)):
        bench = Bench()
        with pytest.raises(type(error)):
            bench.run((*before, error))
        assert bench.waited == []


@pytest.mark.parametrize(
    "error", [TopicMissing("gone"), BatchFailed("?"), CommitUnknown("?"), OSError("?")], ids=repr
)
def test_what_nobody_can_tell_is_tried_again_only_where_it_worked_before(error: Exception) -> None:
    bench = Bench()
    with pytest.raises((RivermouthError, Unexpected)):
        bench.run((error,))
    assert bench.waited == []
    bench = Bench()
    bench.run((opens, error), (error,), (opens,))
    assert bench.waited == [1, 1], "opening and reading have their own time"


@pytest.mark.parametrize(
    "error",
    [
        BatchFailed("?", passes=Passing.IF_A_BATCH_WORKED),
        AttributeError("'pyarrow.lib.OSFile' object has no attribute 'handle'"),
        TypeError("failed to extract field PyCommitProperties.custom_metadata"),
    ],
    ids=repr,
)
def test_what_code_raises_is_tried_again_only_where_it_has_made_a_batch(error: Exception) -> None:
    for before in ((), (opens,), (opens, idles), (commits, opens)):
        bench = Bench()
        with pytest.raises((BatchFailed, Unexpected)):
            bench.run((*before, error))
        assert bench.waited == [], "an opening, and its entry, are no batch"
    bench = Bench()
    bench.run((opens, commits, error), (error,), (opens,))
    assert bench.waited == [1, 1]


def test_what_cannot_be_imported_is_told_at_once() -> None:
    bench = Bench()
    with pytest.raises(MissingPackage) as missing:
        bench.run((opens, commits, ModuleNotFoundError("No module named 'pandas'")))
    assert (missing.value.found, bench.waited) == ("No module named 'pandas'", [])
    assert "pip install 'rivermouth[local]'" in missing.value.remedy


def test_a_pipeline_is_given_up_when_the_time_is_up() -> None:
    bench = Bench()
    with pytest.raises(KafkaUnreachable) as gave_up:
        bench.run(*[(AWAY,)] * 9)
    assert gave_up.value is AWAY
    assert (bench.attempts, bench.waited) == (4, [1, 2, 4])


@pytest.mark.parametrize("success", [commits, idles], ids=["a batch", "nothing to read"])
def test_the_time_begins_anew_once_a_trigger_came_to_its_end(success: Step) -> None:
    bench = Bench()
    failing = (opens, AWAY)
    bench.run(failing, failing, (opens, success, AWAY), failing, (opens,))
    assert bench.waited == [1, 2, 1, 2]


def test_the_time_of_openings_begins_anew_once_one_succeeded() -> None:
    bench = Bench()
    bench.run((AWAY,), (AWAY,), (opens, commits, AWAY), (AWAY,), (opens,))
    assert bench.waited == [1, 2, 1, 1]


@pytest.mark.parametrize("opening", [(opens,), (commits, opens)], ids=["", "with an entry"])
def test_a_batch_that_fails_each_time_is_given_up_though_each_opening_succeeds(
    opening: tuple[Step, ...],
) -> None:
    bench = Bench()
    with pytest.raises(BatchFailed):
        bench.run(*[(*opening, BatchFailed("again"))] * 9)
    assert (bench.attempts, bench.waited) == (4, [1, 2, 4])


def test_once_the_run_is_to_stop_nothing_is_tried_again() -> None:
    bench = Bench(stopped=True)
    with pytest.raises(KafkaUnreachable):
        bench.run((AWAY,))
    assert (bench.waited, bench.heard.retries) == ([], [])


def test_a_stop_ends_the_pause_at_once() -> None:
    class Stopped(Bench):
        def wait(self, timeout: float) -> bool:
            self.stopped = True
            return super().wait(timeout)

    bench = Stopped()
    with pytest.raises(KafkaUnreachable):
        bench.run(*[(AWAY,)] * 9)
    assert (bench.attempts, len(bench.heard.retries)) == (1, 1)


def test_a_loss_in_mid_run_is_opened_again_only_where_it_is_to_be_recorded() -> None:
    lost = RetentionLost("deleted before they were read")
    bench = Bench(record=True)
    bench.run((opens, commits, lost), (opens,))
    assert bench.waited == [1]
    for record, attempt in ((False, (opens, commits, lost)), (True, (lost,))):
        bench = Bench(record=record)
        with pytest.raises(RetentionLost):
            bench.run(attempt)
        assert bench.waited == []


def test_where_only_the_result_matters_the_log_tells_of_each_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Silent().tries_again(RetryReport("orders", AWAY, 1.0))
    [line] = caplog.messages
    assert line == "orders: tried again in 1.0 s: RM301 no broker answers"


# On the ledger itself


@dataclass
class Reading:
    """A run over a world in memory: attempts to open it, then batches that the driver plans."""

    world: World
    watch: Supervision
    act: Iterator[Callable[[World], object]]

    def attempt(self) -> None:
        ingest = Ingest(edges(self.world, Crash(), self.watch, pipeline=RECORDING))
        starts = ingest.open()
        next(self.act)(self.world)
        planned, ended = DriverPlanned(ingest, starts), self.watch.trigger_ended
        planned.run(NO_SESSION, {}, threading.Event(), ended, endless=False)


def test_what_retention_took_in_mid_run_is_recorded_by_the_next_opening() -> None:
    world = World(ends={place(): 6})
    until_done(world)
    world.ends[place()] = 9
    heard, stop = Heard(), threading.Event()
    watch = Supervision(RECORDING, heard, stop, lambda: iter((0.0,)))

    def retention(here: World) -> None:
        here.low[place()] = here.ends[place()] = 9

    watch.run(Reading(world, watch, iter((retention, lambda _: None))).attempt)

    assert [each.error.code for each in heard.retries] == ["RM406"]
    assert [str(each) for each in heard.opens[-1].lost] == ["t-0[6,9)"]
    assert world.history.position == Position({place(): 9})
