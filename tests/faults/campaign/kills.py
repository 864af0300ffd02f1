"""How a driver dies: armed before it is ordered to run, carried out while it runs."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.campaign.plan import TABLES, Kill
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.world import World


def failpoints(kill: Kill) -> str:
    """What RIVERMOUTH_FAILPOINTS must say."""
    return kill.detail if kill.kind == "point" else ""


def armed(kill: Kill, driver: DriverProcess, world: World) -> Callable[[], bool]:
    """Arm a kill. What it gives must be called every few milliseconds while the driver runs, and
    says whether to stop waiting for it."""
    if kill.kind == "call":
        program, call, count = kill.detail.split()
        driver.calls.arm(program, call, int(count))
    elif kill.kind in ("time", "orphan"):
        return _Clock(float(kill.detail), driver, python_only=kill.kind == "orphan").look
    elif kill.kind in ("file", "freeze"):
        return _Watch(kill.detail, driver, world, frozen=kill.kind == "freeze").look
    return lambda: False


class _Clock:
    """Kills after a while."""

    def __init__(self, after_s: float, driver: DriverProcess, *, python_only: bool) -> None:
        self._at = time.monotonic() + after_s
        self._driver = driver
        self._python_only = python_only
        self._done = False

    def look(self) -> bool:
        if not self._done and time.monotonic() > self._at:
            self._driver.signal(signal.SIGKILL, python_only=self._python_only)
            self._done = True
        return False


class _Watch:
    """Kills, or freezes, when a new file of a kind appears in one of the tables."""

    def __init__(self, sort: str, driver: DriverProcess, world: World, *, frozen: bool) -> None:
        self._driver, self._frozen, self._done = driver, frozen, False
        self._tables = [world.table(name) for name in TABLES]
        self._pattern = "_delta_log/*.json" if sort == "log" else "*.parquet"
        self._before = self._seen()

    def _seen(self) -> set[Path]:
        return {file for table in self._tables for file in table.glob(self._pattern)}

    def look(self) -> bool:
        if not self._done and self._seen() - self._before:
            self._driver.signal(signal.SIGSTOP if self._frozen else signal.SIGKILL)
            self._done = True
        return self._done and self._frozen
