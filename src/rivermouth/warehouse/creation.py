"""Making a Delta table where it is missing, beside others who do the same.

Of two that make one table at once, Delta tells one so by a conflict, on any of their next steps.
So a process makes each side table once, and what a conflict with another process ended is tried
again.
"""

from __future__ import annotations

import re
import threading

from pyspark.sql import SparkSession

from rivermouth.spark.address import Address, create_table
from rivermouth.spark.errors import is_conflict, said
from rivermouth.warehouse.attempts import ATTEMPTS, Attempts

_SOMEBODY_WAS_FASTER = re.compile(r"ALREADY_EXISTS|FileAlreadyExistsException")


def make_table(
    session: SparkSession,
    address: Address,
    columns: str,
    more: str = "",
    attempts: Attempts = ATTEMPTS,
) -> None:
    """Create a table with ``columns`` (SQL), if missing; ``more`` ends the statement."""
    conflict: Exception | None = None
    for _ in attempts.each():
        try:
            create_table(session, address, columns, more)
            return
        except Exception as fault:
            if not (is_conflict(fault) or _SOMEBODY_WAS_FASTER.search(said(fault))):
                raise
            conflict = fault
    if conflict is not None:
        raise conflict


class MadeOnce:
    """Tables that the pipelines of one run share: whoever needs one first makes it."""

    def __init__(self) -> None:
        self._making: dict[Address, threading.Lock] = {}
        self._made: set[Address] = set()

    def make(
        self, session: SparkSession, address: Address, columns: str, attempts: Attempts = ATTEMPTS
    ) -> None:
        """Create a table with ``columns`` (SQL), if missing and not made here before."""
        with self._making.setdefault(address, threading.Lock()):
            if address not in self._made:
                make_table(session, address, columns, attempts=attempts)
                self._made.add(address)
