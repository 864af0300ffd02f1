"""Parting a table by its rows' offsets, so that no part holds too many rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PIECES = 2000
"""How many pieces are counted at once, before they are put together."""


@dataclass(frozen=True)
class Slice:
    """The offsets ``start <= o < until`` of all partitions, and how many rows have one of them."""

    start: int
    until: int
    rows: int

    def within(self, offset: str) -> str:
        """The condition in SQL; ``offset`` is the column."""
        return f"{offset} >= {self.start} AND {offset} < {self.until}"


def width_of(whole: Slice) -> int:
    """How many offsets wide each of the ``PIECES`` of a slice is."""
    return -(-(whole.until - whole.start) // PIECES)


def packed(whole: Slice, pieces: Mapping[int, int], at_most: int) -> list[Slice]:
    """Slices that hold all rows of ``whole``, in order, none of them more than ``at_most``.

    ``pieces`` are the rows of each piece by its number; those without any may be left out. A
    piece that alone holds more is a slice of its own.
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
