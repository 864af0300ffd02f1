"""Whether the changes of a batch are broadcast to the join with the table.

A broadcast spares the shuffle of the table. How large the changes are is not known before: a few
records may hold more than a driver takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rivermouth.spark.errors import said

RECORDS_MAX = 200_000
_TOO_LARGE = re.compile(
    r"spark\.driver\.maxResultSize|not enough memory to build and broadcast|cannot broadcast",
    re.IGNORECASE,
)


class Broadcast:
    """Changes of at most ``RECORDS_MAX`` records are broadcast, until some are too large for it."""

    def __init__(self) -> None:
        self._failed = 0  # of the ways, how many were once too large

    def write(self, records: int, *ways: Callable[[], None]) -> None:
        """Call the first of ``ways``, which broadcasts most; more records begin with the second.

        Where the changes are too large for one, the next is called: a commit comes after the join,
        so nothing was written. Later changes of this landing begin with the way that wrote.
        Raises what the last way raises.
        """
        first = max(self._failed, 0 if records <= RECORDS_MAX else 1)
        for number, write in enumerate(ways[first:], first + 1):
            try:
                write()
            except Exception as fault:
                if number == len(ways) or not too_large(fault):
                    raise
                self._failed = number
            else:
                return


def too_large(fault: Exception) -> bool:
    """Whether a write failed since what it broadcasts is too large."""
    return _TOO_LARGE.search(said(fault)) is not None
