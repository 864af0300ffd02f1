"""One connection for each process and key, whichever of its threads asks first."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import pytest

from rivermouth.write.sinks import pooled

pytestmark = pytest.mark.unit


def test_threads_that_ask_at_once_get_what_was_made_once() -> None:
    made, together = count(), Barrier(8)

    def make() -> int:
        time.sleep(0.05)
        return next(made)

    def ask(_: int) -> int:
        together.wait()
        return pooled("asked at once", make)

    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(ask, range(8))] == [0] * 8
    assert pooled("another key", make) == 1


def test_a_process_does_not_use_the_connection_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = count()
    assert pooled("forked", lambda: next(made)) == 0
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert [pooled("forked", lambda: next(made)) for _ in range(2)] == [1, 1]
