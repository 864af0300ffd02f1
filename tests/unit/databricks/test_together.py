"""A continuous job ends as a whole once a pipeline has given up, and not because of a halt."""

from __future__ import annotations

import threading

import pytest

from rivermouth.databricks.job import Together
from rivermouth.errors import (
    BatchFailed,
    KafkaRefused,
    KafkaUnreachable,
    RivermouthError,
    TopicRecreated,
)
from rivermouth.run.report import OpenReport, PipelineReport, RetryReport
from tests.builders import position
from tests.lake import Heard

pytestmark = pytest.mark.unit


def ended(name: str, error: RivermouthError | None = None) -> PipelineReport:
    return PipelineReport(name, 1, 9, 0, 2, 1.0, error)


@pytest.mark.parametrize(
    ("error", "stops"),
    [
        (KafkaUnreachable("away"), True),
        (BatchFailed("failed"), True),
        (KafkaRefused("no right"), True),
        (TopicRecreated("made anew"), False),
        (None, False),
    ],
    ids=lambda each: getattr(each, "code", str(each)),
)
def test_the_others_end_where_another_run_may_help(
    error: RivermouthError | None, stops: bool
) -> None:
    heard, stop, said = Heard(), threading.Event(), list[str]()
    together = Together(heard, stop, said.append)
    together.finished(ended("a", error))
    assert stop.is_set() is stops
    assert len(said) == stops
    assert [each.pipeline for each in heard.ends] == ["a"]


def test_only_the_first_that_gives_up_says_so_and_a_stop_of_others_is_none() -> None:
    stop, said = threading.Event(), list[str]()
    together = Together(Heard(), stop, said.append)
    for name in ("a", "b"):
        together.finished(ended(name, KafkaUnreachable("away")))
    assert said == [
        "a: gave up; the other pipelines end after their current batch, so that the job fails"
    ]


def test_everything_else_is_passed_on() -> None:
    heard = Heard()
    together = Together(heard, threading.Event(), lambda _: None)
    opened = OpenReport("a", 1, position(1), 0, 0)
    waits = RetryReport("a", KafkaUnreachable("away"), 1.0)
    together.opened(opened)
    together.tries_again(waits)
    assert (heard.opens, heard.retries) == ([opened], [waits])
