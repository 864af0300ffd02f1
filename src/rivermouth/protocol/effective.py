"""Which entry of a pipeline stood at each version of a table, as far as its log tells. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

UNKNOWN = -1
"""Nobody can tell which entry stands."""


class Standings:
    """Grows with the walk over a log; 0: no entry stood, ``UNKNOWN``: nobody can tell."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, int]] = []

    def note(self, version: int, sequence: int) -> None:
        """From ``version`` on, until the next note, the entry ``sequence`` stood."""
        self._marks.append((version, sequence))

    def at(self, version: Any) -> int:
        """The entry that a RESTORE to ``version`` leaves standing.

        A RESTORE to a point in time does not record the version. It cannot be found again:
        Delta goes by the times of files, in the time zone of a session. Nor can an entry
        that log clean-up has taken.
        """
        if not str(version).isdigit():
            return UNKNOWN
        index = bisect_right(self._marks, (int(version), 1 << 62)) - 1
        return self._marks[index][1] if index >= 0 else UNKNOWN

    def known_before(self, version: int) -> int | None:
        """The newest version before ``version`` of which one can tell; None: of none."""
        if self.at(version - 1) != UNKNOWN:
            return version - 1
        return max(
            (at for at, stood in self._marks if stood != UNKNOWN and at < version), default=None
        )
