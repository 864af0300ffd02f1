"""Which offsets the ledger covers, as arrays: millions of offsets are looked up at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rivermouth.verification.ledger.entry import LedgerEntry, Partition

Offsets = NDArray[np.int64]
Flags = NDArray[np.bool_]


Ranged = tuple[int, int, int]
"""``[start, until)``, and the index of an entry."""
_REMOVED = -2
"""The index of an entry that log clean-up removed; -1 is none at all."""


class Former:
    """Ranges whose records are no longer those that Kafka shows at these offsets.

    An offset may lie in several: each accepted change may have left one.
    """

    def __init__(self, ranges: Mapping[Partition, Sequence[Ranged]]) -> None:
        self._ranges = ranges
        self._starts = {each: _sorted(one[0] for one in found) for each, found in ranges.items()}
        self._untils = {each: _sorted(one[1] for one in found) for each, found in ranges.items()}
        self._of_entry: dict[Partition, dict[int, list[tuple[int, int]]]] = {}
        for each, found in ranges.items():
            of_entry = self._of_entry.setdefault(each, {})
            for start, until, entry in found:
                of_entry.setdefault(entry, []).append((start, until))

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._ranges)

    def __contains__(self, partition: object) -> bool:
        return partition in self._ranges

    def times(self, partition: Partition, offsets: Offsets) -> Offsets:
        """In how many ranges each offset lies: so many rows may be left of it."""
        if partition not in self._ranges:
            return np.zeros(len(offsets), np.int64)
        begun = np.searchsorted(self._starts[partition], offsets, side="right")
        ended = np.searchsorted(self._untils[partition], offsets, side="right")
        return np.asarray(begun - ended, np.int64)

    def covers(self, partition: Partition, offset: int) -> bool:
        """Whether the offset lies in any."""
        return bool(self.times(partition, np.array([offset], np.int64))[0])

    def of_entries(self, partition: Partition, offsets: Offsets, entries: Offsets) -> Flags:
        """Which offsets lie in a range of the entry that stands beside them."""
        inside = np.zeros(len(offsets), bool)
        if partition not in self._ranges:
            return inside
        for entry in np.unique(entries).tolist():
            for start, until in self._of_entry[partition].get(entry, ()):
                inside |= (entries == entry) & (offsets >= start) & (offsets < until)
        return inside

    def ends(self) -> dict[Partition, int]:
        """The offset after the last one of each partition."""
        return {each: int(untils[-1]) for each, untils in self._untils.items()}

    def newest(self) -> int:
        """The index of the newest entry among them; -1: there is none."""
        return max((one[2] for found in self._ranges.values() for one in found), default=-1)


def _sorted(offsets: Iterable[int]) -> Offsets:
    return np.array(sorted(offsets), np.int64)


def _cut(ranges: Iterable[Ranged], first: int) -> tuple[list[Ranged], list[Ranged]]:
    """The parts of ranges before the offset ``first``, and those from it on."""
    before = [(start, min(until, first), entry) for start, until, entry in ranges if start < first]
    after = [(max(start, first), until, entry) for start, until, entry in ranges if until > first]
    return before, after


class Span:
    """The recorded ranges of one partition, in order of their offsets.

    ``entries`` holds for each range the index of its entry among the effective entries.
    ``disjoint``: no offset lies in two ranges. ``visible``, ``quarantined`` and ``skipped`` count
    records per range while a pipeline is verified.
    """

    def __init__(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        ordered = sorted(each for each in ranges if each[0] < each[1])
        self.starts = np.array([each[0] for each in ordered], np.int64)
        self.untils = np.array([each[1] for each in ordered], np.int64)
        self.entries = np.array([each[2] for each in ordered], np.int64)
        self.disjoint = bool(np.all(self.starts[1:] >= self.untils[:-1]))
        self.visible = np.zeros(len(ordered), np.int64)
        self.quarantined = np.zeros(len(ordered), np.int64)
        self.skipped = np.zeros(len(ordered), np.int64)

    @property
    def start(self) -> int:
        """The first covered offset."""
        return int(self.starts[0])

    @property
    def until(self) -> int:
        """The offset after the last covered one."""
        return int(self.untils.max())

    def is_full(self, index: int) -> bool:
        """Whether a visible record has been counted at each offset of a range."""
        return bool(self.visible[index] == self.untils[index] - self.starts[index])

    def all_full(self) -> bool:
        """The same of all ranges."""
        return bool(np.array_equal(self.visible, self.untils - self.starts))

    def index(self, offsets: Offsets) -> Offsets:
        """The index of the range that holds each offset, -1 where there is none."""
        found = np.searchsorted(self.starts, offsets, side="right") - 1
        inside = (found >= 0) & (offsets < self.untils[np.maximum(found, 0)])
        return np.where(inside, found, -1)


class Coverage:
    """The ledger's ranges by partition; partitions without a covered offset are left out.

    ``former`` are those that mean other records than Kafka holds now, since an operator accepted
    a change of the source. They are not in ``spans``. ``trimmed``: log clean-up removed earlier
    entries. They covered what is before the first known offset.
    """

    def __init__(self, entries: Sequence[LedgerEntry], *, trimmed: bool = False) -> None:
        ranges: dict[Partition, list[Ranged]] = {}
        former: dict[Partition, list[Ranged]] = {}
        for number, entry in enumerate(entries):
            changes = entry.changes
            renewed = changes.renewed() if changes is not None else {}
            for partition, first in renewed.items():
                if trimmed and changes is not None and partition not in former:
                    known = [start for start, _, _ in ranges.get(partition, ())]
                    until = min(known, default=changes.moved[partition][0] or 0)
                    unknown = [(first, until, _REMOVED)] if first < until else []
                    former.setdefault(partition, []).extend(unknown)
                left, gone = _cut(ranges.pop(partition, ()), first)
                ranges |= {partition: left} if left else {}
                former.setdefault(partition, []).extend(gone)
            for each in entry.ranges:
                if each.start < each.until:
                    found = ranges.setdefault(each.partition, [])
                    found.append((each.start, each.until, number))
        self.spans: Mapping[Partition, Span] = {
            partition: Span(found) for partition, found in sorted(ranges.items())
        }
        self.former = Former({each: found for each, found in former.items() if found})

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.spans)

    def total(self) -> int:
        """How many offsets lie between the ends of all partitions: an upper bound of records."""
        return sum(each.until - each.start for each in self.spans.values())

    def records(self) -> int:
        """How many visible records have been counted."""
        return sum(int(each.visible.sum()) for each in self.spans.values())

    def skipped(self) -> int:
        """How many records have been counted that make no row."""
        return sum(int(each.skipped.sum()) for each in self.spans.values())

    def quarantined(self) -> int:
        """How many quarantined records have been counted."""
        return sum(int(each.quarantined.sum()) for each in self.spans.values())
