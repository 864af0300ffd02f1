"""Attempts at a write: the first at once, the others after a pause each."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rivermouth.config import Retry
from rivermouth.warehouse.ports import Attempts

pytestmark = pytest.mark.unit


def test_each_attempt_but_the_first_comes_after_its_pause() -> None:
    waited: list[float] = []
    seen = []
    for number in Attempts(lambda: iter((0.1, 0.3)), waited.append).each():
        seen.append((number, [*waited]))
    assert seen == [(0, []), (1, [0.1]), (2, [0.1, 0.3])]


def test_who_asks_for_no_other_attempt_does_not_wait() -> None:
    waited: list[float] = []
    attempts = Attempts(lambda: iter((0.1,)), waited.append)
    for _ in range(2):
        assert next(attempts.each()) == 0
    assert waited == []


def test_the_configuration_says_for_how_long() -> None:
    retry = Retry(first=timedelta(seconds=8), longest=timedelta(seconds=20))
    pause = next(Attempts.by(retry).pauses())
    assert 4 <= pause <= 8
    assert next(Attempts.by(Retry(total=timedelta())).pauses(), None) is None
