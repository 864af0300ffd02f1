"""The metrics of a table of totals, repeated from their description: states that can be added.

Of distinct values a table holds an estimate, that of a HyperLogLog sketch. It is compared with the
number here, within six standard errors. A sketch of few values is exact: it keeps a hash of each.

The state of a metric is None as long as it has met no value. A null is no value, for none of them.
A sum of decimals with more than 28 digits may be too large on the way although it fits in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

KEPT = 1 << 16
"""So many of the smallest hashes are kept: 512 KiB for one total of one key."""
_SKETCH_ERROR = 1.04 / math.sqrt(1 << 12)
"""The relative standard error of a sketch with 2^12 registers."""
_ERRORS = 6
_FEW = 192
"""Of so many values a sketch keeps 26 bits of each hash: two may coincide."""
_SPACE = 2.0**64


def hashed(value: Any) -> int:
    """64 bits of a value: a whole number, a text or bytes."""
    if isinstance(value, int):
        data = value.to_bytes(16, "big", signed=True)
    else:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def packed(hashes: set[int]) -> bytes:
    """The smallest of these hashes, to be merged."""
    return _smallest(np.fromiter(hashes, np.uint64, len(hashes))).tobytes()


def merged(one: bytes, other: bytes) -> bytes:
    """The smallest hashes of both."""
    both = [np.frombuffer(each, np.uint64) for each in (one, other)]
    return _smallest(np.unique(np.concatenate(both))).tobytes()


def distinct(hashes: bytes) -> tuple[int, float]:
    """How many values there were, and how far from it the estimate of a sketch may be."""
    smallest = np.frombuffer(hashes, np.uint64)
    if len(smallest) < KEPT:
        return len(smallest), _tolerance(len(smallest), 0.0)
    number = round((KEPT - 1) * _SPACE / (float(smallest.max()) + 1))
    return number, _tolerance(number, 1 / math.sqrt(KEPT - 2))


def _tolerance(number: int, own_error: float) -> float:
    if number <= _FEW:
        return 1.0
    return _ERRORS * math.hypot(_SKETCH_ERROR, own_error) * number


def _smallest(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return hashes if len(hashes) <= KEPT else np.partition(hashes, KEPT - 1)[:KEPT]


State = Any
_WIDE = Context(prec=120)
_BIGINT = (1 << 63) - 1
_SUM_DIGITS, _MORE_DIGITS = 37, 10
_NARROW_DIGITS, _DIGITS = 28, 38


@dataclass(frozen=True)
class Metric:
    """One metric: ``column`` of records, None where records are counted; ``kind`` is its type.

    A sum of whole numbers is a BIGINT, that of a DECIMAL has ten digits more, at most 37.
    """

    name: str
    function: str
    column: str | None = None
    kind: pa.DataType | None = None

    def begun(self, value: Any) -> State:
        """The state after one value."""
        if self.function == "approx_distinct":
            return {hashed(value)}
        if self.function == "count":
            return 1
        return (value, value.copy_abs()) if self._is_wide else value

    def with_value(self, state: State, value: Any) -> State:
        """The state after one value more; it may be the same one, changed."""
        if self.function == "approx_distinct":
            state.add(hashed(value))
            return state
        return self.joined(state, self.begun(value))

    def on_disk(self, state: State) -> State:
        """The state as it waits on disk, and as ``joined`` takes it."""
        return packed(state) if isinstance(state, set) else state

    def joined(self, one: State, other: State) -> State:
        """The state after the values of both."""
        if one is None or other is None:
            return other if one is None else one
        return _JOIN[self.function](one, other)

    def fits(self, total: State) -> bool:
        """Whether the column of a sum can hold a total."""
        if total is None:
            return True
        total = self.shown(total)
        if self.kind is None or not pa.types.is_decimal(self.kind):
            return bool(-_BIGINT - 1 <= total <= _BIGINT)
        digits = min(self.kind.precision + _MORE_DIGITS, _SUM_DIGITS) - self.kind.scale
        # Not abs(): it rounds to the digits of the context.
        return bool(total.copy_abs() < Decimal(10) ** digits)

    def fits_in_any_order(self, total: State) -> bool:
        """Whether each sum on the way fits into a DECIMAL, whatever the order of the values."""
        if total is None or self.kind is None or not self._is_wide:
            return True
        return bool(total[1] < Decimal(10) ** (_DIGITS - self.kind.scale))

    def agrees(self, state: State, found: Any) -> bool:
        """Whether a table may hold ``found`` for this state."""
        if self.function == "approx_distinct":
            number, tolerance = distinct(state or b"")
            return found is not None and abs(found - number) <= tolerance
        expected = self.shown(state)
        return bool(expected == found) or repr(expected) == repr(found)

    def may_grow_to(self, state: State, found: Any) -> bool:
        """Whether a table may hold ``found`` for this state if there were more records."""
        if state is None or self.function == "sum":
            return True
        if found is None:
            return False
        if self.function == "approx_distinct":
            number, tolerance = distinct(state)
            return bool(found >= number - tolerance)
        if self.function == "count":
            return bool(found >= state)
        return self.agrees(self.joined(state, found), found)

    def shown(self, state: State) -> Any:
        """What a table holds for this state; a number of distinct values is exact here."""
        if self.function == "approx_distinct":
            return distinct(state or b"")[0]
        if state is None:
            return 0 if self.function == "count" else None
        return state[0] if self._is_wide else state

    @cached_property
    def _is_wide(self) -> bool:
        """Whether the state is the sum, and the sum of the values without their signs."""
        if self.function != "sum" or self.kind is None or not pa.types.is_decimal(self.kind):
            return False
        return bool(self.kind.precision > _NARROW_DIGITS)


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(map(_WIDE.add, one, other))
    return one + other if isinstance(one, int) else _WIDE.add(one, other)


def _rank(value: Any) -> tuple[bool, Any]:
    """NaN is the highest of all numbers."""
    return (True, 0) if value != value else (False, value)


_JOIN: Mapping[str, Callable[[State, State], State]] = {
    "sum": _sum,
    "count": lambda one, other: one + other,
    "min": lambda one, other: min(one, other, key=_rank),
    "max": lambda one, other: max(one, other, key=_rank),
    "approx_distinct": merged,
}
