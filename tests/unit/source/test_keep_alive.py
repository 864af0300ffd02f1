"""A session is asked something now and then, however long nothing is to be read."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import pytest
from pyspark.sql import SparkSession

from rivermouth.source.driver_planned import ASK_S, KeepAlive

pytestmark = pytest.mark.unit

HOUR_S = 3_600.0


@dataclass
class Clock(threading.Event):
    """Time passes only while somebody waits; it is set at ``until``."""

    until: float = float("inf")
    now: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now = min(self.now + (timeout or 0.0), self.until)
        return self.now >= self.until


@dataclass
class Asked:
    """A session that notes when it is asked."""

    clock: Clock
    at: list[float] = field(default_factory=list)

    @property
    def conf(self) -> Asked:
        return self

    def get(self, _: str) -> str:
        self.at.append(self.clock.now)
        return "UTC"


def waiting(clock: Clock) -> tuple[KeepAlive, Asked]:
    session = Asked(clock)
    return KeepAlive(cast(SparkSession, session), clock), session


@pytest.mark.parametrize("every_s", [1.0, 10.0, ASK_S, ASK_S + 1, HOUR_S, 3 * HOUR_S])
def test_no_more_than_twice_the_time_passes_without_a_question(every_s: float) -> None:
    clock = Clock()
    alive, session = waiting(clock)
    while clock.now < 6 * HOUR_S:
        before = clock.now
        assert not alive.wait(every_s, clock)
        assert clock.now == pytest.approx(before + every_s)
    asked = [0.0, *session.at, clock.now]
    assert max(b - a for a, b in pairwise(asked)) <= 2 * ASK_S
    assert len(session.at) <= clock.now / ASK_S


def test_a_short_run_asks_nothing() -> None:
    clock = Clock()
    alive, session = waiting(clock)
    for _ in range(10):
        alive.wait(1.0, clock)
    assert session.at == []


def test_a_stop_ends_a_long_wait() -> None:
    clock = Clock(until=700.0)
    alive, session = waiting(clock)
    assert alive.wait(HOUR_S, clock)
    assert clock.now == 700.0
    assert session.at == [ASK_S, 2 * ASK_S]
