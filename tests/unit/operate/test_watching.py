"""The status as it changes: a table in its place on a terminal, tables or JSON lines elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from rivermouth.operate.pace import Pace, State, Step
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.operate.waiting import Waiting
from rivermouth.protocol.kafka_facts import Outlook, TimeLeft, unknown
from rivermouth.run.watching import sparkline, watch, watch_table

pytestmark = pytest.mark.unit

STEPS = tuple(
    Step(number * 5_000, 100 * (number % 4), 90_000 - number * 8_000) for number in range(10)
)
LEFT = Waiting(1, TimeLeft(Outlook.BY_AGE, "", 7_200.0))
LATE = PipelineStatus(
    "orders_of_all_countries",
    State.CATCHING_UP,
    "s.orders",
    sequence=9,
    lag_messages=1_234_567,
    lag_seconds=3_600.0,
    pace=Pace(STEPS),
    waiting=LEFT,
)
FOUND = Status(
    [
        LATE,
        PipelineStatus("payments", State.OK, "s.p", lag_messages=0, lag_seconds=0.0),
        PipelineStatus("gone", State.BLOCKED, "s.g", reason="RM404 orders: " + "word " * 30),
        replace(LATE, name="dead", state=State.STOPPED, waiting=Waiting(None, unknown("no"))),
    ]
)


def test_the_table_fits_and_tells_what_is_known() -> None:
    text = watch_table(FOUND)
    assert max(map(len, text.splitlines())) <= 80
    cells = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    late = ["orders_of_al…", "CATCHING_UP", "1.23M", "1.0 h", "28", "37.5 m", "2.0 h"]
    assert [*late, "▅█▁▃▅█▁▃"] in cells
    assert ["payments", "OK", "0", "0.0 s", "-", "-", "-"] in cells
    assert ["dead", "STOPPED", "1.23M", "1.0 h", "0", "-", "-", "▅█▁▃▅█▁▃"] in cells
    assert "gone: RM404 orders: word" in text


def test_a_sparkline_is_as_high_as_what_was_read() -> None:
    assert sparkline(Pace((Step(0, 0), Step(1, 7), Step(2, 70)))) == "▁▁█"
    assert sparkline(Pace((Step(0, 0),))) == "▁"
    assert sparkline(Pace()) == ""


def looks(number: int) -> Iterator[float]:
    """So many looks, and then somebody interrupts."""
    yield from [0.0] * (number - 1)
    raise KeyboardInterrupt


@pytest.mark.parametrize("terminal", [True, False])
def test_it_looks_again_until_it_is_interrupted(terminal: bool) -> None:
    text, times, asked = io.StringIO(), looks(3), list[int]()

    def ask() -> Status:
        asked.append(1)
        return FOUND

    shown = Console(file=text, force_terminal=terminal, width=80)
    watch(ask, 0.0, shown, wait=lambda _: next(times))
    assert len(asked) == 3
    assert text.getvalue().count("payments") == 3 + terminal, "a terminal keeps the last one"
    assert ("\x1b[" in text.getvalue()) is terminal, "colour on a terminal alone"


def test_machines_get_what_they_say() -> None:
    said, times = list[Status](), looks(2)
    watch(lambda: FOUND, 0.0, Console(file=io.StringIO()), said.append, lambda _: next(times))
    assert said == [FOUND, FOUND]
