"""Sums by time, in few buckets of one width. Pure.

Nobody knows beforehand how long a time the commits span. So a bucket begins as a second, and
where there would be too many, all of them become wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def widths() -> Iterator[int]:
    """The widths in ms, without an end; each is a multiple of the one before."""
    yield from (each * _SECOND for each in (1, 5, 25, 50, 100))
    yield from (each * _MINUTE for each in (5, 15, 30))
    yield from (each * _HOUR for each in (1, 2, 6, 12))
    yield from (_DAY << each for each in count())


@dataclass
class Buckets(Generic[T]):
    """At most ``most`` buckets. ``join`` adds a second value to a first one, in place."""

    most: int
    join: Callable[[T, T], object]
    found: dict[int, T] = field(default_factory=dict)
    """By the number of the bucket: its beginning in ms since 1970, divided by the width."""

    def __post_init__(self) -> None:
        self._widths = widths()
        self.width_ms = next(self._widths)

    def put(self, at_ms: int, value: T) -> None:
        """Add a value, which is the bucket's own from then on."""
        self._add(at_ms // self.width_ms, value)
        while len(self.span) > self.most:
            narrow, before = self.width_ms, self.found
            self.width_ms, self.found = next(self._widths), {}
            for number, each in before.items():
                self._add(number * narrow // self.width_ms, each)

    def _add(self, number: int, value: T) -> None:
        if number in self.found:
            self.join(self.found[number], value)
        else:
            self.found[number] = value

    @property
    def span(self) -> range:
        """The numbers from the first bucket to the last one, those that hold nothing, too."""
        return range(min(self.found), max(self.found) + 1) if self.found else range(0)

    @property
    def from_ms(self) -> int:
        """When the first bucket begins."""
        return self.span.start * self.width_ms

    def dense(self) -> Sequence[T | None]:
        """What each of them holds, in order; None: nothing."""
        return [self.found.get(each) for each in self.span]
