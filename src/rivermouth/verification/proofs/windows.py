"""The windows of offsets through which a proof reads partitions, one of each at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rivermouth.verification.ledger.coverage import Coverage, Offsets, Span
from rivermouth.verification.ledger.entry import Partition
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.proofs.replay import Seen
from rivermouth.verification.result import Unchecked
from rivermouth.verification.subject import Subject

_STRIDE = 101


def stride_of(subject: Subject, bounds: Bounds) -> int:
    """Of which offsets the values are compared: of its multiples. Says what is left out."""
    total = subject.coverage.total()
    if total <= bounds.values:
        return 1
    line = f"values at offsets that are not a multiple of {_STRIDE}"
    subject.findings.leave(Unchecked.SAMPLED, line, total - total // _STRIDE)
    return _STRIDE


@dataclass(frozen=True)
class Window:
    """The offsets ``[start, until)`` of a partition: its ``number``-th from 0 on."""

    partition: Partition
    span: Span
    number: int
    start: int
    until: int

    @property
    def size(self) -> int:
        """How many offsets it has."""
        return self.until - self.start

    def offsets(self) -> Offsets:
        """All its offsets."""
        return np.arange(self.start, self.until, dtype=np.int64)

    def entries(self, offsets: Offsets) -> Offsets:
        """The index of the entry that covers each offset; where none does, that of any."""
        return self.span.entries[self.span.index(offsets)]


class WindowCheck(Protocol):
    """Compares one window."""

    def see(self, seen: Seen) -> None:
        """Take visible records of the window, ascending."""

    def close(self) -> None:
        """Compare what was seen: it is all that there is."""


def by_window(
    replayed: Iterable[Seen], coverage: Coverage, size: int, begin: Callable[[Window], WindowCheck]
) -> None:
    """Check all windows of ``size`` offsets, also those without a visible record."""
    checks: dict[Partition, tuple[int, WindowCheck]] = {}

    def begun(partition: Partition, number: int) -> WindowCheck:
        span = coverage.spans[partition]
        start = span.start + number * size
        return begin(Window(partition, span, number, start, min(start + size, span.until)))

    def advanced(partition: Partition, to: int) -> WindowCheck:
        """The check of a window. All windows before it are closed."""
        number, check = checks.get(partition) or (0, begun(partition, 0))
        while number < to:
            check.close()
            number += 1
            check = begun(partition, number)
        checks[partition] = number, check
        return check

    for seen in replayed:
        span = coverage.spans[seen.partition]
        numbers = (seen.offsets - span.start) // size
        for number in np.unique(numbers).tolist():
            first, last = np.searchsorted(numbers, [number, number + 1]).tolist()
            advanced(seen.partition, number).see(seen.part(first, last))
        if seen.done:
            advanced(seen.partition, (span.until - 1 - span.start) // size).close()
            del checks[seen.partition]
