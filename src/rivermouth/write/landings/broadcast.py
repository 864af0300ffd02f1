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
        self._fits = True

    def write(self, records: int, write: Callable[[bool], None]) -> None:
        """Call ``write``, with whether the changes are to be broadcast.

        Where they are too large, it is called once more, without: a commit comes after the join,
        so nothing was written. No later changes of this landing are broadcast then.
        """
        small = self._fits and records <= RECORDS_MAX
        try:
            write(small)
        except Exception as fault:
            if not small or not _TOO_LARGE.search(said(fault)):
                raise
            self._fits = False
            write(False)
