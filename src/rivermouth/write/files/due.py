"""Which files of a table are to be written anew: small ones together, and those with deleted rows.

Files are of tiers by their size, and those of one tier are joined. So each row is written as often
as there are tiers, whatever the number of batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rivermouth.warehouse.delta.actions import AddFile

TARGET_BYTES = 128 << 20
"""A file of so many bytes is not joined with others, where the table does not say how large."""
TOGETHER = 8
"""So many files of one tier are joined; a tier has files of up to four times the size."""
DELETED = 0.1
"""A file of which so large a part is deleted is written anew."""
_TIER = 4
_SMALLEST = 64 << 10


_Values = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Extent:
    """A file of a table: its bytes, its rows, and how many of these are deleted."""

    file: AddFile
    rows: int

    @property
    def deleted(self) -> int:
        """Rows that are deleted."""
        return 0 if self.file.vector is None else self.file.vector.rows

    @property
    def holes(self) -> float:
        """The part of its rows that is deleted."""
        return self.deleted / max(self.rows, 1)

    @property
    def live_bytes(self) -> float:
        """About the bytes of its live rows."""
        return self.file.size * (1 - self.holes)

    @property
    def partition(self) -> _Values:
        """The values of the partition columns."""
        return tuple(sorted(self.file.partition.items()))

    @property
    def tier(self) -> int:
        """The number of its tier: small files have small ones."""
        tier, size = 0, self.live_bytes
        while size > _SMALLEST:
            tier, size = tier + 1, size / _TIER
        return tier


def due(files: Iterable[AddFile], target: int = TARGET_BYTES, together: int = 0) -> list[AddFile]:
    """The files of one partition that a job is to write anew, if any: those of the fullest tier, or
    the ones of which the most is deleted.

    A file of ``target`` bytes is not joined with others. ``together``: join so many files, whatever
    their tiers; 0: as is best beside batches.
    """
    extents = [Extent(each, each.rows or 0) for each in files]
    tiers: dict[tuple[_Values, int], list[Extent]] = {}
    for each in extents:
        if each.live_bytes < target:
            tiers.setdefault((each.partition, 0 if together else each.tier), []).append(each)
    fullest = max(tiers.values(), key=lambda each: len(each), default=[])
    holey = sorted(extents, key=lambda each: -each.holes)
    # What is farther beyond its bound comes first: so neither grows where time is short.
    number = len(fullest) / (together or TOGETHER)
    holes = holey[0].holes / DELETED if holey else 0.0
    if number >= (1 if together else max(holes, 1)):
        return _within(sorted(fullest, key=lambda each: each.live_bytes), target)
    beyond = [each for each in holey if each.holes >= DELETED]
    return _within([each for each in beyond if each.partition == beyond[0].partition], target)


def _within(extents: Sequence[Extent], target: int) -> list[AddFile]:
    """As many of these, in their order, as make one file that is not joined with others."""
    found, size = list[AddFile](), 0.0
    for each in extents:
        if size >= target:
            break
        size += each.live_bytes
        found.append(each.file)
    return found
