"""How a driver dies: armed before it is ordered to run, carried out while it runs."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.campaign.plan import TABLES, Kill
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.world import World


def failpoints(kill: Kill) -> str:
    """What RIVERMOUTH_FAILPOINTS must say."""
    return kill.detail if kill.kind == "point" else ""


@contextmanager
def armed(kill: Kill, driver: DriverProcess, world: World) -> Iterator[Callable[[], object]]:
    """Arm a kill; what it gives must be called every few milliseconds while the driver runs."""
    if kill.kind == "call":
        with _traced(kill, driver):
            yield lambda: None
    elif kill.kind in ("time", "orphan"):
        yield _Clock(float(kill.detail), driver, python_only=kill.kind == "orphan").look
    elif kill.kind in ("file", "freeze"):
        number = signal.SIGKILL if kill.kind == "file" else signal.SIGSTOP
        yield _Watch(kill.detail, driver, world, number).look
    else:
        yield lambda: None


@contextmanager
def _traced(kill: Kill, driver: DriverProcess) -> Iterator[None]:
    """``strace`` kills the process before its k-th call of a kind takes effect."""
    which, call, count = kill.detail.split()
    pid = driver.jvm if which == "jvm" else driver.python
    inject = f"inject={call}:signal=SIGKILL:when={count}"
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(pid), "-e", f"trace={call}", "-e", inject, "-o", "/dev/null"],
        stderr=subprocess.PIPE,
    )
    try:
        assert tracer.stderr
        if b"attached" not in tracer.stderr.readline():
            raise RuntimeError("strace cannot attach to a process of ours")
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        try:
            tracer.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            tracer.kill()
            tracer.communicate()


class _Clock:
    """Kills after a while."""

    def __init__(self, after_s: float, driver: DriverProcess, *, python_only: bool) -> None:
        self._at = time.monotonic() + after_s
        self._driver = driver
        self._python_only = python_only
        self._done = False

    def look(self) -> None:
        if not self._done and time.monotonic() > self._at:
            self._driver.signal(signal.SIGKILL, python_only=self._python_only)
            self._done = True


class _Watch:
    """Sends a signal when a new file of a kind appears in one of the tables."""

    def __init__(self, sort: str, driver: DriverProcess, world: World, number: int) -> None:
        self._driver, self._number, self._done = driver, number, False
        tables = [world.table(name) for name in TABLES]
        pattern = "_delta_log/*.json" if sort == "log" else "*.parquet"
        self._look_for = [(table, pattern) for table in tables]
        self._before = self._seen()

    def _seen(self) -> set[Path]:
        return {file for table, pattern in self._look_for for file in table.glob(pattern)}

    def look(self) -> None:
        if not self._done and self._seen() - self._before:
            self._driver.signal(self._number)
            self._done = True

    @property
    def done(self) -> bool:
        return self._done
