"""Signals: the first asks, SIGTERM never insists, a second Ctrl-C ends the process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.unit

WAITS = """
from rivermouth.run.starting import Stop
stop = Stop("asked", "insisted")
stop.listen()
print("ready", flush=True)
stop.event.wait(30)
print("finishing", flush=True)
input()
print("finished", flush=True)
"""


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_the_work_finish(
    waiting: subprocess.Popen[str], number: signal.Signals
) -> None:
    waiting.send_signal(number)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "finishing\n"
    waiting.send_signal(signal.SIGTERM)
    out, err = waiting.communicate("\n", timeout=30)
    assert (waiting.returncode, out) == (0, "finished\n")
    assert err.strip() == "asked"


def test_a_second_interrupt_ends_the_process_at_once(waiting: subprocess.Popen[str]) -> None:
    waiting.send_signal(signal.SIGTERM)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "finishing\n"
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert out == ""
    assert err.split() == ["asked", "insisted"]
