"""Values of a chunk to rows: which are read by which schema, and what became of each.

Also what a source may say of binary formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded, joined, nulled
from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.lanes import Bytes, Faults, Flags, Ints, Lanes
from rivermouth.formats.strict_json.chunk import bytes_of, portions
from rivermouth.formats.strict_json.types import schema_of


@dataclass(frozen=True)
class Settings:
    """``unit``: what a plain number in a TIMESTAMP counts; None refuses it. ``cut``: what is less
    than a microsecond is cut. ``any_case``: names are compared without the case of letters.
    ``empty``: a record without a field of the columns is a row of nulls.
    """

    unit: str | None = None
    cut: bool = False
    any_case: bool = False
    empty: bool = False

    def same(self, name: str) -> str:
        """Equal for names that count as one."""
        return name.lower() if self.any_case else name


def settings_of(settings: Mapping[str, Any]) -> Settings:
    """The settings of a source, as the ledger names them."""
    times, lenient = settings.get("timestamps", {}), settings.get("lenient", ())
    return Settings(
        times.get("unit"),
        times.get("fraction") == "cut",
        "any_case" in lenient,
        settings.get("on_empty") == "null",
    )


def row_of(columns: Sequence[Column]) -> pa.StructType:
    """The type of rows of these columns."""
    return pa.struct(list(schema_of(columns)))


_RECORDS, _BYTES = 10_000, 8 << 20
"""So much is read at once: what is made of it stays in the cache of the processor."""
_MOSTLY = 20

Read = Callable[[Lanes, Site], pa.StructArray]
"""Reads a value of each lane to its end, or refuses it; a row for each lane."""


@dataclass(frozen=True)
class Unreadable:
    """None of the values of a schema can be read."""

    code: str
    reason: str


@dataclass(frozen=True)
class Values:
    """Values by their numbers: where each begins and ends. One that is empty gives no row."""

    data: Bytes
    buffer: pa.Buffer
    numbers: Ints
    begins: Ints
    ends: Ints
    faults: Faults

    def lanes(self, these: np.ndarray | slice = slice(None)) -> Lanes:
        """Those at the indices, from their first byte on."""
        begins, ends, numbers = self.begins[these], self.ends[these], self.numbers[these]
        return Lanes(self.data, begins, ends, numbers, self.faults)


@dataclass(frozen=True)
class Group:
    """Values that are read in one way."""

    lanes: Lanes
    read: Read


def decode(
    values: pa.Array, row: pa.StructType, groups: Callable[[Values], Iterable[Group]]
) -> Decoded:
    """The rows of all values. What ``groups`` leaves out must have a fault."""
    done = [
        _decoded(values.slice(part.start, len(part)), row, groups)
        for part in portions(values, _BYTES, _RECORDS)
    ]
    return done[0] if len(done) == 1 else joined(done, row)


def _decoded(
    values: pa.Array, row: pa.StructType, groups: Callable[[Values], Iterable[Group]]
) -> Decoded:
    data, starts = bytes_of(values)
    there = values.is_valid().to_numpy(zero_copy_only=False) & (np.diff(starts) > 0)
    # Where few are missing, they are read with the others: to take these apart would cost more.
    every = np.count_nonzero(there) * _MOSTLY > len(there) * (_MOSTLY - 1)
    numbers = np.arange(len(there)) if every else np.flatnonzero(there)
    copied, faults = Bytes.of(data), Faults()
    begins, ends = starts[:-1][numbers], starts[1:][numbers]
    given = Values(copied, pa.py_buffer(copied.codes), numbers, begins, ends, faults)
    read: list[tuple[Ints, pa.StructArray]] = []
    for each in groups(given):
        owners = each.lanes.records
        site = Site(given.buffer, copied, faults, owners, "")
        read.append((owners, each.read(each.lanes, site)))
    why = faults.why if there.all() else {at: each for at, each in faults.why.items() if there[at]}
    return _placed(read, row, there).with_faults(why)


def _placed(
    read: Sequence[tuple[Ints, pa.StructArray]], row: pa.StructType, there: Flags
) -> Decoded:
    """Rows in their order; null where nothing is ``there``."""
    count = len(there)
    none = pa.nulls(count, pa.string())
    if len(read) == 1 and len(read[0][0]) == count:  # as nearly always
        rows = read[0][1]
        return Decoded(rows if there.all() else nulled(rows, ~there), none, none)
    rows = pa.concat_arrays([pa.array([], row), *(each for _, each in read)])
    places, left = np.zeros(count, np.int64), np.ones(count, np.bool_)
    numbers = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in read)])
    places[numbers], left[numbers] = np.arange(len(numbers)), False
    return Decoded(rows.take(pa.array(places, mask=left | ~there)), none, none)
