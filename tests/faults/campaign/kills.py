"""How a driver dies: armed before it is ordered to run, carried out while it runs."""

from __future__ import annotations

import signal
import time

from tests.faults.campaign.looks import Look, new_file, once
from tests.faults.campaign.plan import Kill
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.world import TABLES, World


def failpoints(kill: Kill) -> str:
    """What RIVERMOUTH_FAILPOINTS must say."""
    return kill.detail if kill.kind == "point" else ""


def armed(kill: Kill, driver: DriverProcess, world: World) -> Look:
    """Arm a kill. What it gives says whether to stop waiting for the driver."""
    if kill.kind == "call":
        program, call, count = kill.detail.split()
        driver.calls.arm(program, call, int(count))
    if kill.kind in ("call", "point"):
        return lambda: False
    frozen = kill.kind == "freeze"

    def strike() -> bool:
        number = signal.SIGSTOP if frozen else signal.SIGKILL
        driver.signal(number, python_only=kill.kind == "orphan")
        return True

    if kill.kind in ("time", "orphan"):
        at = time.monotonic() + float(kill.detail)
        struck = once(lambda: time.monotonic() > at, strike)
    else:
        pattern = "_delta_log/*.json" if kill.detail == "log" else "*.parquet"
        struck = once(new_file(pattern, *map(world.table, TABLES)), strike)
    return lambda: struck() and frozen
