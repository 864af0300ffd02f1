"""Splitting a table by the offsets of its rows, so that no part holds too many rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PIECES = 2000
"""How many pieces one query counts, before they are joined."""


@dataclass(frozen=True)
class Slice:
    """The offsets ``start <= o < until`` of all partitions, and how many rows have them."""

    start: int
    until: int
    rows: int

    def within(self, offset: str) -> str:
        """The condition in SQL; ``offset`` is the column."""
        return f"{offset} >= {self.start} AND {offset} < {self.until}"


def width_of(whole: Slice) -> int:
    """How many offsets each of the ``PIECES`` of a slice has."""
    return -(-(whole.until - whole.start) // PIECES)


def packed(whole: Slice, pieces: Mapping[int, int], at_most: int) -> list[Slice]:
    """Slices that together hold all rows of ``whole``, in order, each at most ``at_most``.

    ``pieces`` are the numbers of rows by the number of the piece; a piece without rows may be
    left out. A piece that alone holds more than ``at_most`` is a slice of its own.
    """
    width = width_of(whole)
    found: list[Slice] = []
    for number, rows in sorted(pieces.items()):
        start = whole.start + number * width
        until = min(start + width, whole.until)
        if found and found[-1].rows + rows <= at_most:
            found[-1] = Slice(found[-1].start, until, found[-1].rows + rows)
        else:
            found.append(Slice(start, until, rows))
    return found
