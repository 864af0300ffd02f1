"""Which offsets the ledger covers, as arrays: millions of offsets are looked up at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rivermouth.verify.ledger.entry import LedgerEntry, Partition

Offsets = NDArray[np.int64]


class Span:
    """The recorded ranges of one partition, in order of their offsets.

    ``entries`` holds for each range the index of its entry among the effective entries.
    ``disjoint``: no offset lies in two ranges. ``visible`` and ``quarantined`` count records per
    range while a pipeline is verified.
    """

    def __init__(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        ordered = sorted(each for each in ranges if each[0] < each[1])
        self.starts = np.array([each[0] for each in ordered], np.int64)
        self.untils = np.array([each[1] for each in ordered], np.int64)
        self.entries = np.array([each[2] for each in ordered], np.int64)
        self.disjoint = bool(np.all(self.starts[1:] >= self.untils[:-1]))
        self.visible = np.zeros(len(ordered), np.int64)
        self.quarantined = np.zeros(len(ordered), np.int64)

    @property
    def start(self) -> int:
        """The first covered offset."""
        return int(self.starts[0])

    @property
    def until(self) -> int:
        """The offset after the last covered one."""
        return int(self.untils.max())

    def index(self, offsets: Offsets) -> Offsets:
        """The index of the range that holds each offset, -1 where there is none."""
        found = np.searchsorted(self.starts, offsets, side="right") - 1
        inside = (found >= 0) & (offsets < self.untils[np.maximum(found, 0)])
        return np.where(inside, found, -1)


class Coverage:
    """The ledger's ranges by partition; partitions without a covered offset are left out."""

    def __init__(self, entries: Sequence[LedgerEntry]) -> None:
        ranges: dict[Partition, list[tuple[int, int, int]]] = {}
        for number, entry in enumerate(entries):
            for each in entry.ranges:
                if each.start < each.until:
                    found = ranges.setdefault(each.partition, [])
                    found.append((each.start, each.until, number))
        self.spans: Mapping[Partition, Span] = {
            partition: Span(found) for partition, found in sorted(ranges.items())
        }

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.spans)

    def total(self) -> int:
        """How many offsets lie between the ends of all partitions: an upper bound of records."""
        return sum(each.until - each.start for each in self.spans.values())

    def records(self) -> int:
        """How many visible records have been counted."""
        return sum(int(each.visible.sum()) for each in self.spans.values())

    def quarantined(self) -> int:
        """How many quarantined records have been counted."""
        return sum(int(each.quarantined.sum()) for each in self.spans.values())
