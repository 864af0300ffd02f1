"""Digests of 64 bits: the same number for a record of Kafka and for the row it should leave.

A column of values becomes a column of digests, columns of digests become one digest per row.
The sum of the digests of rows, modulo 2**64, is a digest of a table in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Digests = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

MODULUS = 1 << 64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_NULL = np.uint64(0x6E756C6C)


def of_bytes(*parts: bytes | None) -> int:
    """The digest of byte strings, each of which may be missing."""
    taken = blake2b(digest_size=8)
    for part in parts:
        taken.update(b"-" if part is None else b"%d:" % len(part))
        taken.update(part or b"")
    return int.from_bytes(taken.digest(), "big")


def of_integers(values: Integers) -> Digests:
    """Splitmix64's finalizer: close numbers get digests far apart."""
    mixed: Digests = values.astype(np.uint64) + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[1]
    last: Digests = mixed ^ (mixed >> np.uint64(31))
    return last


def of_column(values: Any) -> Digests:
    """The digest of each value of an Arrow array of integers, times or texts."""
    if pa.types.is_integer(values.type) or pa.types.is_timestamp(values.type):
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
        whole = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        digests = of_integers(whole)
    else:
        texts = values.cast(pa.string()) if pa.types.is_string_view(values.type) else values
        coded = pc.fill_null(texts.cast(pa.binary()), b"").dictionary_encode()
        known = [of_bytes(each) for each in coded.dictionary.to_pylist()]
        digests = np.array(known, np.uint64)[coded.indices.to_numpy(zero_copy_only=False)]
    missing = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(missing, _NULL, digests)


def of_rows(columns: Sequence[Digests]) -> Digests:
    """One digest per row; the order of the columns counts."""
    total = np.zeros(len(columns[0]), np.uint64)
    for each in columns:
        total = of_integers((total * _MIX[0] + each).view(np.int64))
    return total


def of_places(topic: str, partition: int, offsets: Integers) -> list[Digests]:
    """What ``topic``, ``partition`` and offset add to the digest of a row."""
    place = of_bytes(topic.encode(), b"%d" % partition)
    return [np.full(len(offsets), place, np.uint64), of_integers(offsets)]


def sum_of(digests: Digests) -> int:
    """The digest of rows in any order."""
    return int(digests.sum(dtype=np.uint64)) if len(digests) else 0
