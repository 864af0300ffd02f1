"""What Spark's Python workers do with Kafka's rows in Arrow: join, and decode."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@cache
def spare_what_is_loaded() -> None:
    """Let the garbage collector pass over what is there now; once for each process.

    To be called at the end of a task: all that tasks need is loaded then, and stays. The objects of
    the modules alone are 100,000; to look at them after each task takes 40 ms.
    """
    gc.freeze()


@contextmanager
def without_collector() -> Iterator[None]:
    """A block that makes many objects, none of which refer to each other in a circle.

    To look for such circles is a fourth of what it takes to make them. Where two threads are in
    such a block, the collector is on again when the first of them leaves it.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


_RECORDS = 20_000
_BYTES = 16 << 20


@dataclass(frozen=True)
class Rebatched:
    """A function for ``DataFrame.mapInArrow``: ``task`` gets the batches joined."""

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(rebatched(batches))


def rebatched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows in their order. What is joined has at most so many records and bytes together; a
    batch that has more stays as it is.

    To begin with a batch costs as much as some thousand of its records, and from Spark larger ones
    are not cheaper (``write.arrow_batches``).
    """
    waiting: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        records, size = records + len(batch), size + batch.nbytes
        if waiting and (records > _RECORDS or size > _BYTES):
            yield _as_one(waiting)
            waiting, records, size = [], len(batch), batch.nbytes
        waiting.append(batch)
    if waiting:
        yield _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = pa.Table.from_batches(batches).combine_chunks().columns
    # Without rows a column has no chunk.
    arrays = [each.chunk(0) if each.num_chunks else pa.array([], each.type) for each in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batches[0].schema)


SKIPPED = "skipped"
"""In place of a code: a record that makes no row, and is not bad."""
NO_VALUE = "RM601"
"""The code of a record without a value that deletes nothing."""
EMPTY = "RM602"
"""The code of a value without a byte."""
NO_KEY = "RM605"
"""The code of a record without a value in a column of the key."""
NO_MESSAGE_KEY = "RM604"
"""The code of a tombstone whose message key names no row."""
NO_FIELD = "RM610"
"""The code of a record that has no field of the columns."""
NULL = "RM614"
"""The code of a record without a value in a column that is NOT NULL."""
NO_EVENT = "RM615"
"""The code of a record that does not say what happened to which row."""
TRUNCATED = "RM616"
"""The code of an event by which all rows went."""
NOT_TOLD = "RM617"
"""The code of an event that creates a row, and does not tell a value of it."""
OTHER_KEY = "RM618"
"""The code of an event by which a row has another key."""
_LONGEST = 200
REFUSAL = "RM600: a record of this batch goes to quarantine"
"""The error of a task, or of a job, that met a bad record where it takes none."""


@dataclass(frozen=True)
class Decoded:
    """What became of each record, in their order.

    ``rows`` is null for a bad record and for a null or empty value. ``reasons`` says why a record
    is bad, in at most 200 characters, and ``codes`` what kind of fault that is; both are null for
    all others. ``deletes``: which rows say only what was deleted; None: no one does. ``kept``: the
    columns, as lists of names, whose values a row does not tell, since they stay; null: none.
    """

    rows: pa.StructArray
    reasons: pa.StringArray
    codes: pa.StringArray
    deletes: pa.BooleanArray | None = None
    kept: pa.ListArray | None = None

    def with_faults(self, bad: Mapping[int, tuple[str, str]]) -> Decoded:
        """The same, but for records that are bad after all: their places, code and reason."""
        if not bad:
            return self
        at = sorted(bad)
        none = np.zeros(len(self.rows), np.bool_)
        none[at] = True
        these, codes = pa.array(none), pa.array([bad[each][0] for each in at])
        reasons = pa.array([bad[each][1][:_LONGEST] for each in at])
        return replace(
            self,
            rows=nulled(self.rows, none),
            reasons=pc.replace_with_mask(self.reasons, these, reasons),
            codes=pc.replace_with_mask(self.codes, these, codes),
        )

    @classmethod
    def of(cls, rows: pa.StructArray, reasons: pa.StringArray, code: str) -> Decoded:
        """Bad records are all of one kind."""
        return cls(rows, reasons, coded(reasons.is_valid(), code))


def nulled(rows: pa.StructArray, these: np.ndarray) -> pa.StructArray:
    """The same rows, and null where that holds, as their fields are. No value is copied."""
    if not rows.type.num_fields:
        return pc.if_else(pa.array(these), pa.scalar(None, rows.type), rows)
    fields = [*rows.type]
    gone = pa.array(these | rows.is_null().to_numpy(zero_copy_only=False))
    told = pa.StructArray.from_arrays(rows.flatten(), fields=fields, mask=gone)
    return pa.StructArray.from_arrays(told.flatten(), fields=fields, mask=gone)


def joined(parts: Sequence[Decoded], row: pa.StructType) -> Decoded:
    """All records of the parts in order; ``row`` is the type of their rows."""
    none = pa.array([], pa.string())
    return Decoded(
        pa.concat_arrays([pa.array([], row), *(each.rows for each in parts)]),
        pa.concat_arrays([none, *(each.reasons for each in parts)]),
        pa.concat_arrays([none, *(each.codes for each in parts)]),
    )


def coded(these: pa.BooleanArray, code: str) -> pa.StringArray:
    """The code where that holds, null elsewhere."""
    if not these.true_count:
        return pa.nulls(len(these), pa.string())
    return pc.if_else(these, pa.scalar(code), pa.scalar(None, pa.string()))


def parents(lists: pa.ListArray) -> np.ndarray:
    """Which list each value of ``lists.flatten()`` is in, by its number; null ones have none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return np.repeat(np.arange(len(lists)), lengths)


def listed(lists: pa.ListArray, name: str) -> pa.BooleanArray:
    """Which lists have the name; a null one has none."""
    found = np.zeros(len(lists), np.bool_)
    here = pc.fill_null(pc.equal(lists.flatten(), name), False)
    found[parents(lists)[here.to_numpy(zero_copy_only=False)]] = True
    return pa.array(found)


class InArrow(Protocol):
    """Decodes values or message keys; it can be pickled. A null or an empty one has no row."""

    def decode(self, values: pa.Array) -> Decoded:
        """Rows of the configured columns, in order. Never raises for what a record holds."""


def absent(values: pa.Array, without: str | None = NO_VALUE) -> pa.StringArray:
    """The code of empty values, ``without`` that of null ones; null for all others."""
    lengths = pc.binary_length(values)
    if not values.null_count and pc.min(lengths).as_py() != 0:  # as nearly always
        return pa.nulls(len(values), pa.string())
    empty = pc.if_else(pc.equal(lengths, 0), EMPTY, pa.scalar(None, pa.string()))
    return pc.if_else(values.is_null(), pa.scalar(without, pa.string()), empty)
