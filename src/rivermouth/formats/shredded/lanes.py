"""Records that are read side by side, by passes of NumPy: each lane is one record.

A record that turns out bad stays in its lane, so that all arrays keep their length. Its place is
its end from then on, and what it gives means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""One whole number for each lane or element."""
Flags = NDArray[np.bool_]

BAD = "RM603"
"""The code of a value that does not follow its format, or does not fit the columns."""
_STOPS = np.uint64(0x8080808080808080)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES = np.uint64(0x0101010101010101)
_GAPS = (
    (np.uint64(1), np.uint64(0x007F007F007F007F), np.uint64(0x3F803F803F803F80)),
    (np.uint64(2), np.uint64(0x00003FFF00003FFF), np.uint64(0x0FFFC0000FFFC000)),
    (np.uint64(4), np.uint64(0x000000000FFFFFFF), np.uint64(0x00FFFFFFF0000000)),
)
"""How far the upper half of two, four and eight bytes moves; what stays, and what is moved."""
_1, _56, _63 = np.uint64(1), np.uint64(56), np.uint64(63)
_PADDING = 16
"""So many bytes may be looked at beyond the last record."""


@dataclass(frozen=True)
class Bytes:
    """The bytes of all records, one after the other, and zeros behind them.

    ``words`` are the eight bytes from each place on, the lowest first.
    """

    codes: NDArray[np.uint8]
    words: NDArray[np.uint64]

    @property
    def view(self) -> memoryview:
        """The same byte by byte, for a loop of Python's."""
        return self.codes.data

    @classmethod
    def of(cls, data: pa.Buffer) -> Bytes:
        """A copy of the buffer."""
        codes = np.zeros(data.size + _PADDING, np.uint8)
        codes[: data.size] = np.frombuffer(data, np.uint8)
        words: NDArray[np.uint64] = np.ndarray((data.size + 9,), "<u8", codes, strides=(1,))
        return cls(codes, words)


@dataclass
class Faults:
    """Why records are bad, by their numbers: code and reason. The first one of each counts."""

    why: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, records: Ints, reason: str, code: str = BAD) -> None:
        """Say why these are bad."""
        for each in records.tolist():
            self.why.setdefault(each, (code, reason))


@dataclass
class Lanes:
    """``at``: where the next value of each lane begins; ``end``: where its record ends.

    ``records`` are the numbers of the records, ascending.
    """

    data: Bytes
    at: Ints
    end: Ints
    records: Ints
    faults: Faults

    def __len__(self) -> int:
        return len(self.at)

    def refuse(self, bad: Flags, reason: str) -> None:
        """Let the lanes where ``bad`` holds end, with the reason."""
        if bad.any():
            self.faults.add(self.records[bad], reason)
            self.at = np.where(bad, self.end, self.at)

    def only(self, these: NDArray[Any]) -> Lanes:
        """The lanes at those indices; to be given back by ``back``."""
        at, end, records = self.at[these], self.end[these], self.records[these]
        return Lanes(self.data, at, end, records, self.faults)

    def back(self, these: NDArray[Any], lanes: Lanes) -> None:
        """Go on where those lanes have come to."""
        self.at = self.at.copy()  # what was found may stand where these begin
        self.at[these] = lanes.at

    def span(self, lengths: Ints | int, what: str) -> tuple[Ints, Ints]:
        """Where the next so many bytes begin, and how many they are; goes behind them.

        A lane without them is bad; so is one with a negative length.
        """
        start = self.at
        taken = lengths if isinstance(lengths, np.ndarray) else np.full(len(start), lengths)
        # What is negative is larger than all others without its sign.
        bad = taken.view(np.uint64) > (self.end - start).view(np.uint64)
        self.at = start + taken
        if bad.any():
            self.refuse(bad, f"{what}: the record ends within it")
            start, taken = np.where(bad, self.end, start), np.where(bad, 0, taken)
        return start, taken

    def varints(self, what: str, *, cut: bool = False, most: int = 10) -> NDArray[np.uint64]:
        """Unsigned numbers of 64 bits, seven bits in a byte, the lowest first; 0 for a bad lane.

        ``cut``: of the ten bytes bits beyond the 64 count for nothing; else they are bad. ``most``:
        one of more bytes is bad.
        """
        first = self.data.codes[self.at]
        if not len(first) or first.max() < 0x80:
            values, lengths = first.astype(np.uint64), np.ones(len(first), np.int64)
        else:
            values, lengths = _short(self.data.words[self.at])
            if not lengths.all():
                long = np.flatnonzero(lengths == 0)
                values[long], lengths[long] = _long(self.data, self.at[long], cut)
            if most < 10 and lengths.max() > most:
                lengths[lengths > most] = -1
        _, taken = self.span(lengths, what)
        if taken is not lengths:  # some are bad
            values[taken == 0] = 0
        return values

    def zigzags(self, what: str) -> Ints:
        """Signed numbers of 64 bits: 0, -1, 1, -2 … are written as 0, 1, 2, 3 …"""
        return unzigzag(self.varints(what))


def unzigzag(values: NDArray[np.uint64]) -> Ints:
    """0, 1, 2, 3 … become 0, -1, 1, -2 …"""
    signed: Ints = (values >> _1).view(np.int64) ^ -((values & _1).view(np.int64))
    return signed


def _short(words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Ints]:
    """Varints of at most 8 bytes, and their lengths; 0 for a longer one."""
    stops = ~words & _STOPS
    # All bits up to the lowest one that is set; all bits where none is.
    mask = stops ^ (stops - _1)
    if not stops.all():
        mask[stops == 0] = 0
    lengths: Ints = (((mask & _ONES) * _ONES) >> _56).view(np.int64)
    mask &= _SEVENS
    mask &= words
    return _closed(mask), lengths


def _closed(found: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Without the gap of one bit above each seven."""
    for shift, stays, moved in _GAPS:
        upper = found >> shift
        upper &= moved
        found &= stays
        found |= upper
    return found


def _long(data: Bytes, at: Ints, cut: bool) -> tuple[NDArray[np.uint64], Ints]:
    """Those of 9 or 10 bytes; the length is -1 for one that has more than 64 bits."""
    low = _closed(data.words[at] & _SEVENS)
    ninth = data.codes[np.minimum(at + 8, len(data.codes) - 1)].astype(np.uint64)
    tenth = data.codes[np.minimum(at + 9, len(data.codes) - 1)].astype(np.uint64)
    more = ninth >= 0x80
    values = low | ((ninth & np.uint64(0x7F)) << _56)
    values = np.where(more, values | ((tenth & _1) << _63), values)
    lengths = np.where(more, np.where(tenth > (0x7F if cut else 1), -1, 10), 9)
    return values, lengths
