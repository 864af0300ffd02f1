"""When an endless run opens again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import cast

import pytest

from rivermouth.config import Pipeline, Topics
from rivermouth.errors import KafkaUnreachable
from rivermouth.kafka.facts import AskKafka
from rivermouth.run.feeding import OtherTopics, UntilStale
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit


def test_a_sign_that_was_seen_is_kept_and_no_end_of_the_run() -> None:
    stop, signs = threading.Event(), [False, True, False, False]
    until = UntilStale(stop, lambda: signs.pop(0))
    assert [until.is_set(), until.wait(0), until.is_set(), until.stale] == [False, True, True, True]
    assert not stop.is_set()


def test_a_stop_is_one_without_a_sign() -> None:
    stop = threading.Event()
    until = UntilStale(stop, lambda: False)
    stop.set()
    assert until.is_set()
    assert until.wait(0)
    assert not until.stale


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Names:
    """A client that tells these names, or is not answered."""

    def __init__(self, *names: str) -> None:
        self.names_told = frozenset(names)
        self.away = False
        self.asked = 0

    def names(self) -> frozenset[str]:
        self.asked += 1
        if self.away:
            raise KafkaUnreachable("no broker answers")
        return self.names_told


@dataclass
class Look:
    """The sign of a pipeline that was opened with ``in_a``."""

    kafka: Names = field(default_factory=lambda: Names("in_a", "out"))
    clock: Clock = field(default_factory=Clock)
    pipeline: Pipeline = field(default_factory=lambda: opened("in_a"))

    def __post_init__(self) -> None:
        self.sign = OtherTopics(self.pipeline, lambda: cast(AskKafka, self.kafka), self.clock)

    def at(self, seconds: float) -> bool:
        self.clock.now = seconds
        return self.sign()


def opened(*topics: str) -> Pipeline:
    pipeline = a_pipeline(pattern="in_.*")
    source = pipeline.source.model_copy(update={"topics": Topics(topics, "in_.*")})
    return pipeline.model_copy(update={"source": source})


def test_other_topics_are_seen_ten_seconds_after_the_first_trigger_has_ended() -> None:
    look = Look(Names("in_a", "in_b"))
    assert not look.at(60.0), "nothing was read yet"
    look.sign.trigger_ended()
    assert not look.at(69.9)
    assert look.kafka.asked == 0
    assert look.at(70.0)


def test_kafka_is_asked_at_most_once_in_ten_seconds() -> None:
    look = Look()
    look.sign.trigger_ended()
    for seconds in range(40):
        look.sign.trigger_ended()
        assert not look.at(seconds)
    assert look.kafka.asked == 3


def test_a_topic_that_is_gone_is_a_sign_and_no_answer_is_none() -> None:
    look = Look(Names())
    look.sign.trigger_ended()
    look.kafka.away = True
    assert not look.at(10.0)
    look.kafka.away = False
    assert look.at(20.0)


def test_where_topics_are_named_kafka_is_not_asked() -> None:
    look = Look(Names("in_b"), pipeline=a_pipeline("in_a"))
    look.sign.trigger_ended()
    assert not look.at(60.0)
    assert look.kafka.asked == 0
