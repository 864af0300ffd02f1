"""Looks at the status beside a run: how often, and what a look that fails does."""

from __future__ import annotations

import threading

import pytest

from rivermouth.monitor.observing import Observing
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status

pytestmark = pytest.mark.unit

FOUND = Status([PipelineStatus("orders", State.OK, "s.orders")])


def test_it_looks_now_and_then_and_once_more_at_the_end() -> None:
    told, enough = list[Status](), threading.Event()

    def tell(found: Status) -> None:
        told.append(found)
        if len(told) == 3:
            enough.set()

    with Observing(lambda: FOUND, [tell], every_s=0.001):
        assert enough.wait(10)
    assert len(told) >= 4


def test_a_run_that_ends_is_looked_at_once() -> None:
    told = list[Status]()
    with Observing(lambda: FOUND, [told.append], every_s=None):
        assert told == []
    assert told == [FOUND]


def test_a_look_that_fails_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> Status:
        raise ValueError("a defect")

    with Observing(look, [print], every_s=None):
        pass
    assert "a defect" in caplog.text


def test_without_anybody_to_tell_nothing_is_looked_at() -> None:
    def look() -> Status:
        raise AssertionError("looked")

    with Observing(look, [], every_s=0.001):
        pass
