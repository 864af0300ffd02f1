"""The log of a run: JSON lines, and sums once a minute."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from rivermouth.errors import KafkaRefused, KafkaUnreachable, OffsetGap
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.lines import Line, Lines, Minutes, as_json_lines, as_text
from rivermouth.run.report import MirrorReport, RetryReport
from tests.unit.cli.test_progress import committed, finished, opened

pytestmark = pytest.mark.unit

FINE = PipelineStatus("orders", State.OK, "s.orders", lag_messages=1_200, lag_seconds=3.25)


def test_each_event_is_one_json_object() -> None:
    text = io.StringIO()
    heard = Lines(as_json_lines(text, lambda: 1_767_225_600.5))
    heard.opened(opened())
    heard.committed(committed(span=100))
    heard.tries_again(RetryReport("orders", KafkaUnreachable("away", where="k:9092"), 12.0, 3))
    heard.not_mirrored(MirrorReport(("a", "b"), "burrow", KafkaRefused("live members")))
    heard.finished(finished())
    heard.finished(finished(error=OffsetGap("a gap")))
    found: list[dict[str, Any]] = [json.loads(line) for line in text.getvalue().splitlines()]
    assert {each["time"] for each in found} == {"2026-01-01T00:00:00.500Z"}
    assert [(each["event"], each["pipeline"], each["level"]) for each in found] == [
        ("opened", "orders", "info"),
        ("committed", "orders", "info"),
        ("tries_again", "orders", "warning"),
        ("not_mirrored", "a, b", "warning"),
        ("failed", "orders", "error"),
    ]
    commit = {name: found[1][name] for name in ("applied", "quarantined", "offsets", "seconds")}
    assert commit == {"applied": 93, "quarantined": 7, "offsets": 100, "seconds": 1.2}
    assert (found[2]["error"]["code"], found[2]["tries"]) == ("RM301", 3)
    assert found[4]["error"]["code"] == "RM401"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_run_without_end_says_sums_once_a_minute_and_each_change_of_state() -> None:
    said, clock = list[Line](), Clock()
    heard = Minutes(said.append, clock)
    slow = replace(FINE, state=State.SLOW)
    blocked = replace(FINE, state=State.BLOCKED, reason="RM404 the topic is another one")
    for second, status in (
        (0, FINE),
        (15, FINE),
        (30, slow),
        (45, slow),
        (60, slow),
        (75, blocked),
    ):
        clock.now = second
        heard.committed(committed(span=100))
        heard.seen(Status([status]))
    assert [each.text for each in said] == [
        "orders: SLOW, was OK",
        "orders: 5 commits, 465 records, 35 quarantined in 60 s; lag 1,200 offsets, 3.2 s",
        "orders: BLOCKED, was SLOW: RM404 the topic is another one",
    ]
    assert [(each.event, each.level) for each in said] == [
        ("state", "warning"),
        ("minute", "info"),
        ("state", "warning"),
    ]
    assert said[1].facts == {
        "commits": 5,
        "offsets": 500,
        "applied": 465,
        "quarantined": 35,
        "skipped": 0,
        "seconds": 60.0,
        "state": "SLOW",
        "lag_records": 1_200,
        "lag_seconds": 3.25,
    }


def test_an_idle_pipeline_says_nothing() -> None:
    said, clock = list[Line](), Clock()
    heard = Minutes(said.append, clock)
    for minute in range(60):
        clock.now = 60.0 * minute
        heard.seen(Status([replace(FINE, lag_messages=0, lag_seconds=0.0)]))
    assert said == []


def test_text_is_folded_and_a_failure_keeps_its_lines() -> None:
    text = io.StringIO()
    heard = Lines(as_text(Console(file=text, width=80)))
    heard.opened(opened())
    heard.finished(finished(error=OffsetGap("a gap", where="orders-0")))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2:4] == ["FAILED orders", "  RM401 orders-0: a gap"]
