"""How a driver dies: armed before it is ordered to run, carried out while it runs."""

from __future__ import annotations

import signal
import time

from tests.cluster.executors import a_worker, all_executors, its_python, one_executor, retired
from tests.faults.campaign.looks import Look, new_file, once
from tests.faults.campaign.plan import Kill
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.world import TABLES, World

LOSSES = {
    "executor": one_executor,
    "executors": all_executors,
    "worker": a_worker,
    "python": its_python,
    "retired": retired,
}
"""What a cluster may lose while its driver lives, and who takes it away."""


def _losing(kill: Kill, world: World) -> Look:
    """What is lost when a file appears, or at a time; the driver goes on."""
    assert world.store is not None
    assert world.store.cluster is not None
    cluster = world.store.cluster

    def strike() -> bool:
        world.lost += LOSSES[kill.kind](cluster)
        return True

    struck = once(_sign(kill.detail, world), strike)

    def look() -> bool:
        struck()
        return False

    return look


def _sign(detail: str, world: World) -> Look:
    """A file appears in a table (``log`` or ``data``), or so many seconds have passed."""
    if detail in ("log", "data"):
        pattern = "_delta_log/*.json" if detail == "log" else "*.parquet"
        return new_file(pattern, *map(world.table, TABLES))
    at = time.monotonic() + float(detail)
    return lambda: time.monotonic() > at


def failpoints(kill: Kill) -> str:
    """What RIVERMOUTH_FAILPOINTS must say."""
    return kill.detail if kill.kind in ("point", "guest") else ""


def armed(kill: Kill, driver: DriverProcess, world: World) -> Look:
    """Arm a kill. What it gives says whether to stop waiting for the driver."""
    if kill.kind in LOSSES:
        return _losing(kill, world)
    if kill.kind == "call":
        program, call, count = kill.detail.split()
        driver.calls.arm(program, call, int(count))
    if kill.kind in ("call", "point", "guest"):
        return lambda: False
    frozen = kill.kind == "freeze"

    def strike() -> bool:
        number = signal.SIGSTOP if frozen else signal.SIGKILL
        driver.signal(number, python_only=kill.kind == "orphan")
        return True

    struck = once(_sign(kill.detail, world), strike)
    return lambda: struck() and frozen
