"""When an endless run opens again."""

from __future__ import annotations

import threading

import pytest

from rivermouth.errors import KafkaUnreachable
from rivermouth.kafka.client import Kafka
from rivermouth.run.stale import UntilStale, other_topics
from tests.builders import place
from tests.doubles import Driver, MemoryKafka, World, a_pipeline

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


@pytest.fixture
def world() -> World:
    return World(ends={place(0, "in_a"): 1}, topics={"in_a": "A"})


def test_other_topics_are_seen_and_asked_for_at_most_once_in_ten_seconds(world: World) -> None:
    clock = Clock()
    sign = other_topics(Driver(world, a_pipeline(pattern="in_.*")).ingest, clock)
    world.topics = {**world.topics, "out": "O", "in_b": "B"}
    seen = {}
    for clock.now in (0.0, 9.9, 10.0):
        seen[clock.now] = sign()
    assert seen == {0.0: False, 9.9: False, 10.0: True}


@pytest.mark.parametrize("topics", [{"in_a": "A"}, {"in_a": "another"}, {"in_a": "A", "out": "O"}])
def test_the_same_names_are_no_sign(world: World, topics: dict[str, str]) -> None:
    clock = Clock()
    sign = other_topics(Driver(world, a_pipeline(pattern="in_.*")).ingest, clock)
    world.topics, clock.now = topics, 60.0
    assert not sign()


def test_a_topic_that_is_gone_is_a_sign_and_no_answer_is_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    sign = other_topics(Driver(world, a_pipeline(pattern="in_.*")).ingest, clock)

    def silent(kafka: Kafka) -> frozenset[str]:
        raise KafkaUnreachable("no broker answers")

    world.topics = {}
    with monkeypatch.context() as away:
        away.setattr(MemoryKafka, "names", silent)
        clock.now = 60.0
        assert not sign()
    clock.now = 120.0
    assert sign()


def test_where_topics_are_named_kafka_is_not_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(kafka: Kafka) -> frozenset[str]:
        raise AssertionError("asked")

    monkeypatch.setattr(MemoryKafka, "names", asked)
    clock = Clock()
    sign = other_topics(Driver(world, a_pipeline("in_a")).ingest, clock)
    clock.now = 60.0
    assert not sign()
