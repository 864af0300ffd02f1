"""Whether the changes of a batch are broadcast to the join with the table.

A broadcast spares the shuffle of the table. How large the changes are is not known before: a few
records may hold more than a driver takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rivermouth.spark.errors import said

RECORDS_MAX = 200_000
# Databricks also broadcasts from executor to executor, and says so in words of its own. The words
# may be few: whatever was written before carries the ``txn`` that a second write has, too.
_TOO_LARGE = re.compile(
    r"spark\.driver\.maxResultSize|not enough memory to (build|store)|cannot broadcast"
    r"|could not execute broadcast",
    re.IGNORECASE,
)


class Broadcast:
    """Changes of at most ``RECORDS_MAX`` records are broadcast, and of fewer where those did not
    fit.
    """

    def __init__(self) -> None:
        self._most = RECORDS_MAX

    def write(self, records: int, small: Callable[[], None], large: Callable[[], None]) -> None:
        """Call ``small`` for few records; where they do not fit into a broadcast, then ``large``.

        After that, half as many records are few. Raises what the last call raises.
        """
        if records <= self._most:
            try:
                small()
            except Exception as fault:
                if not too_large(fault):
                    raise
                self._most = records // 2
            else:
                return
        large()


def too_large(fault: Exception) -> bool:
    """Whether a write failed since what it broadcasts is too large."""
    return _TOO_LARGE.search(said(fault)) is not None
