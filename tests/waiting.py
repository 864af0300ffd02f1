"""Waiting for what another process or thread does, and no longer than it may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable


def wait_for(
    condition: Callable[[], bool], seconds: float = 60, otherwise: str = "it did not happen in time"
) -> None:
    """Wait until ``condition()`` holds; fail with ``otherwise`` where it does not come to that."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)


def wait_for_rows(table: Path, count: int) -> None:
    """Wait until the table there holds so many rows."""
    missed = f"{table} did not come to hold {count} rows"
    wait_for(lambda: rows_in(table) >= count, 120, missed)


def rows_in(table: Path) -> int:
    """How many rows a Delta table holds; 0 while there is none."""
    return DeltaTable(table).count() if DeltaTable.is_deltatable(str(table)) else 0
