"""How many distinct values there are: exact up to 65,536, above that by their smallest hashes.

A table of totals holds an estimate, that of a HyperLogLog sketch. It is compared with the number
here, within six standard errors. A sketch of few values is no estimate: it keeps a hash of each.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import numpy as np
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
    kept = np.frombuffer(hashes, np.uint64)
    if len(kept) < KEPT:
        return len(kept), _tolerance(len(kept), 0.0)
    number = round((KEPT - 1) * _SPACE / (float(kept.max()) + 1))
    return number, _tolerance(number, 1 / math.sqrt(KEPT - 2))


def _tolerance(number: int, own_error: float) -> float:
    if number <= _FEW:
        return 1.0
    return _ERRORS * math.hypot(_SKETCH_ERROR, own_error) * number


def _smallest(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return hashes if len(hashes) <= KEPT else np.partition(hashes, KEPT - 1)[:KEPT]
