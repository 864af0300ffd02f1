"""What a run shows: lines in a log, live rows on a terminal; never wider than 80 columns."""

from __future__ import annotations

import io
import re
import threading
from contextlib import nullcontext

import pytest
from rich.console import Console

from rivermouth.errors import KafkaRefused, KafkaUnreachable, OffsetGap, RivermouthError
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.run.lines import Lines, as_text
from rivermouth.run.progress import LiveRows
from rivermouth.run.report import (
    CommitReport,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
)
from rivermouth.run.text import compact, console, failure, wrapped

pytestmark = pytest.mark.unit

PLACE = TopicPartition("orders", 0)
LONG = "a_pipeline_whose_name_is_as_long_as_it_may_be_sixty_three_chars"


def opened(name: str = "orders", behind: int = 300_000) -> OpenReport:
    return OpenReport(name, 4, Position({PLACE: 10}), behind, 1)


def committed(name: str = "orders", span: int = 100_000, bad: int = 7) -> CommitReport:
    ranges = (OffsetRange(PLACE, 10, 10 + span),)
    rows = (RowCounts(span - bad, bad),)
    return CommitReport(name, 5, 5, ranges, rows, Position({PLACE: 10 + span}), 1.2)


def finished(name: str = "orders", error: RivermouthError | None = None) -> PipelineReport:
    return PipelineReport(name, 1, 99_993, 7, 5, 1.5, error)


def recorder(*, terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=80, force_terminal=terminal, highlight=False), text


def plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()


def test_in_a_log_every_event_is_a_line_and_success_is_left_to_the_summary() -> None:
    shown, text = recorder(terminal=False)
    heard = Lines(as_text(shown))
    heard.opened(opened())
    heard.committed(committed())
    heard.finished(finished())
    assert text.getvalue() == (
        "orders: resumes after entry 4, 300,000 offsets behind; 1 commit(s) of a dead\n"
        "  driver found standing, kept\n"
        "orders: entry 5, version 5: 99,993 records, 7 quarantined, 1.2 s\n"
    )


def test_in_a_log_a_failure_is_said_at_once() -> None:
    shown, text = recorder(terminal=False)
    heard = Lines(as_text(shown))
    heard.finished(finished(error=OffsetGap("a gap", where="orders-0", found="9")))
    assert text.getvalue().splitlines()[:3] == [
        "FAILED orders",
        "  RM401 orders-0: a gap",
        "  found 9",
    ]


def waits(name: str = "orders") -> RetryReport:
    return RetryReport(name, KafkaUnreachable("no broker answers", where="k:9092"), 12.0)


def test_in_a_log_a_pipeline_that_is_tried_again_says_so_and_why() -> None:
    shown, text = recorder(terminal=False)
    heard = Lines(as_text(shown))
    heard.tries_again(waits())
    assert text.getvalue() == "orders: tried again in 12.0 s: RM301 k:9092: no broker answers\n"


def test_on_a_terminal_a_pipeline_that_waits_says_so_and_goes_on_counting() -> None:
    shown, text = recorder(terminal=True)
    with LiveRows(shown) as heard:
        heard.opened(opened())
        heard.committed(committed())
        heard.tries_again(waits())
    lines = plain(text.getvalue())
    assert "orders: tried again in 12.0 s: RM301 k:9092: no broker answers" in lines
    assert [line for line in lines if "rows/s" in line][-1].rstrip().endswith("waiting")
    with LiveRows(shown) as heard:
        heard.opened(opened())
        heard.committed(committed())
        heard.tries_again(waits())
        heard.opened(opened(behind=200_000))
    last = [line for line in plain(text.getvalue()) if "rows/s" in line][-1]
    assert "100k/300k" in last
    assert "7 bad" in last


def test_a_failure_says_how_often_it_was_tried_again() -> None:
    assert "\n  tried again 17 time(s)\n" in failure("orders", waits().error, 17)
    assert "tried again" not in failure("orders", waits().error)


@pytest.mark.parametrize("name", ["orders", LONG])
def test_on_a_terminal_a_row_shows_offsets_speed_lag_and_bad_records(name: str) -> None:
    shown, text = recorder(terminal=True)
    with LiveRows(shown) as heard:
        heard.opened(opened(name))
        heard.committed(committed(name))
    lines = plain(text.getvalue())
    last = [line for line in lines if "rows/s" in line][-1]
    assert "100k/300k" in last
    assert "lag 200k" in last
    assert "7 bad" in last
    assert [line for line in lines if len(line) > 80] == []


def test_on_a_terminal_a_continuous_run_asks_how_far_it_is_behind() -> None:
    shown, text = recorder(terminal=True)
    asked = threading.Event()

    def behind(position: Position) -> int | None:
        assert position == Position({PLACE: 10})
        asked.set()
        return 42

    with LiveRows(shown, behind) as heard:
        heard.opened(opened())
        assert asked.wait(10)
    assert "lag 42" in text.getvalue()


def test_on_a_terminal_a_lag_that_nobody_knows_is_not_zero() -> None:
    shown, text = recorder(terminal=True)
    asked = threading.Event()

    def silent(position: Position) -> int | None:
        del position
        asked.set()
        return None

    with LiveRows(shown, silent) as heard:
        heard.opened(opened())
        assert asked.wait(10)
    assert "lag ?" in text.getvalue()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "?"),
        (0, "0"),
        (999, "999"),
        (1_000, "1.00k"),
        (12_345, "12.3k"),
        (999_999, "999k"),
        (1_000_000, "1.00M"),
        (45_600_000, "45.6M"),
        (999_999_999, "999M"),
        (7_000_000_000, "7.00G"),
    ],
)
def test_numbers_are_cut_to_three_digits_and_unknown_is_not_zero(
    number: int | None, text: str
) -> None:
    assert compact(number) == text


def test_a_failure_is_shown_in_short_lines_with_the_remedy_last() -> None:
    error = OffsetGap("the range starts late " * 4, where="orders-0", expected="5", found="9")
    lines = failure("orders", error).splitlines()
    assert lines[0] == "FAILED orders"
    assert lines[-1].startswith("  to do: ")
    assert max(map(len, lines)) <= 80


def test_a_path_is_never_broken() -> None:
    path = "/" + "long-folder/" * 12
    assert path in wrapped(f"see {path} there", "  ").split()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_is_honoured(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_color: str,
    coloured: bool,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    console().print("FAIL", style="red")
    assert ("\x1b[31m" in capsys.readouterr().out) is coloured


@pytest.mark.parametrize("terminal", [True, False])
def test_a_group_that_is_not_written_is_said_in_lines_that_fit(terminal: bool) -> None:
    shown, text = recorder(terminal=terminal)
    error = KafkaRefused("the consumer group has live members", where="k:9092", found="x " * 40)
    with LiveRows(shown) if terminal else nullcontext(Lines(as_text(shown))) as heard:
        heard.not_mirrored(MirrorReport(("orders", "returns"), "burrow", error))
    lines = plain(text.getvalue())
    assert "orders, returns: the run goes on, but the group burrow is not written: RM303" in lines
    assert max(map(len, lines)) <= 80
