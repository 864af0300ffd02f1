"""The session of a run: started once, when it is needed, after what waits for it was done."""

from __future__ import annotations

import threading
from typing import cast

import pytest
from pyspark.sql import SparkSession

from rivermouth.errors import SetupError
from rivermouth.spark.session import Spark

pytestmark = pytest.mark.unit

SESSION = cast(SparkSession, object())


def test_a_session_is_started_once_for_all_who_ask() -> None:
    starts, asked = list[int](), threading.Barrier(4)

    def start() -> SparkSession:
        starts.append(1)
        return SESSION

    def ask() -> None:
        asked.wait(10)
        assert spark.session() is SESSION

    spark = Spark(start)
    assert not starts
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert (len(starts), spark.started) == (1, SESSION)


def test_what_waits_is_done_before_the_session_is_used_and_then_at_once() -> None:
    spark, done = Spark(lambda: SESSION), list[str]()
    spark.once_started(lambda _: done.append("first"))
    assert done == []
    assert spark.session() is SESSION
    assert done == ["first"]
    spark.once_started(lambda _: done.append("second"))
    spark.session()
    assert done == ["first", "second"]


def test_a_start_that_fails_is_told_to_each_who_asks_and_tried_again() -> None:
    answers: list[SparkSession | Exception] = [SetupError("no Java"), SESSION]

    def start() -> SparkSession:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    spark = Spark(start)
    with pytest.raises(SetupError):
        spark.session()
    assert spark.started is None
    assert spark.session() is SESSION


def test_one_that_runs_is_used_as_it_is() -> None:
    spark = Spark.of(SESSION)
    assert spark.started is SESSION
    assert Spark.of(spark) is spark


def test_what_waits_for_a_session_is_done_whatever_else_fails() -> None:
    """A lock of one pipeline is handed to the JVM although another's cannot be."""
    spark, done = Spark(lambda: SESSION), list[str]()

    def fails(_: SparkSession) -> None:
        raise OSError("no room is left")

    spark.once_started(fails)
    spark.once_started(lambda _: done.append("lock"))
    with pytest.raises(OSError, match="no room"):
        spark.session()
    assert done == ["lock"]
    assert spark.session() is SESSION
