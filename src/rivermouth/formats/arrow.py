"""What Spark's Python workers do with Kafka's rows in Arrow: join, and decode."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Protocol

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


NO_KEY = "RM605"
"""The code of a record without a value in a column of the key."""
NO_MESSAGE_KEY = "RM604"
"""The code of a tombstone whose message key names no row."""


def with_code(codes: pa.StringArray, reasons: pa.StringArray, code: str) -> pa.StringArray:
    """The codes; ``code`` where there is none, and a reason why the record is bad."""
    if reasons.null_count == len(reasons):
        return codes
    return pc.coalesce(codes, pc.if_else(reasons.is_valid(), code, pa.scalar(None, pa.string())))


def without_key(code: pa.StringArray, key: pa.Array, there: pa.BooleanArray) -> pa.StringArray:
    """The codes, with ``NO_KEY`` where a record had none and is ``there``, without its ``key``."""
    if not key.null_count:
        return code
    none = pa.scalar(None, pa.string())
    return pc.coalesce(code, pc.if_else(pc.and_(there, key.is_null()), NO_KEY, none))


REFUSAL = "RM600: a record of this batch goes to quarantine"
"""The error of a task, or of a job, that met a bad record where it takes none."""


@dataclass(frozen=True)
class Decoded:
    """What became of each record, in their order.

    ``rows`` is null for a bad record and for a null or empty value. ``reasons`` says why a record
    is bad, in at most 200 characters; it is null for all others.
    """

    rows: pa.StructArray
    reasons: pa.StringArray


class InArrow(Protocol):
    """Decodes values or message keys; it can be pickled. A null or an empty one has no row."""

    def decode(self, values: pa.Array) -> Decoded:
        """Rows of the configured columns, in order. Never raises for what a record holds."""


@dataclass(frozen=True)
class Stage:
    """Adds what was decoded to Kafka's rows: a function for ``DataFrame.mapInArrow``.

    The columns are those of ``given``, as Kafka has them; ``parsed``, the row of the value; ``why``
    it is bad, or null; ``absent``, a code where there is nothing to decode, or null; and
    ``message_key``, if ``key`` is there: what that makes of the message keys of records without a
    value.

    ``columns`` are those of ``parsed``: what nobody reads is decoded, since it may be bad, and left
    behind.

    ``whole``: ``key`` and ``value`` stay as they are. Else they are null for a record whose value
    gave a row: nobody asks for the bytes of a good record that becomes a row of a table, and to
    carry them back to the JVM costs as much as to decode them. ``with_key``: ``key`` stays all the
    same.

    ``refuses``: the task fails by ``REFUSAL`` at a bad record, and ``why`` is left out; so is
    ``absent``, if a null value is bad, too: if there are no ``tombstones``. Bad are records without
    a value but tombstones, those whose value is bad, and those whose row has no value in one of the
    ``keys``. What a message key names is not checked.
    """

    value: InArrow
    key: InArrow | None
    given: tuple[str, ...]
    columns: tuple[str, ...]
    whole: bool
    with_key: bool = False
    tombstones: bool = False
    refuses: bool = False
    keys: tuple[str, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from map(self._decoded, batches)
        spare_what_is_loaded()

    def _decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column("value")
        found, nothing = self.value.decode(values), absent(values)
        rows = found.rows
        if self.refuses and self._has_bad(found, nothing):
            raise RuntimeError(REFUSAL)
        columns = {name: batch.column(name) for name in self.given}
        if not self.whole:
            without, left = rows.is_null(), {"value"} if self.with_key else {"key", "value"}
            columns |= {name: _only(columns[name], without) for name in left & columns.keys()}
        parsed = _of_columns(rows, self.columns)
        columns |= {"parsed": parsed}
        if not self.refuses:
            columns["why"] = found.reasons
        if not self.refuses or self.tombstones:
            columns["absent"] = nothing
        if self.key is not None:
            keys = _only(batch.column("key"), values.is_null())
            columns["message_key"] = self.key.decode(keys).rows
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])

    def _has_bad(self, found: Decoded, nothing: pa.StringArray) -> bool:
        allowed = pc.sum(pc.equal(nothing, "RM601")).as_py() if self.tombstones else 0
        if len(nothing) - nothing.null_count > (allowed or 0):
            return True
        if found.reasons.null_count < len(found.reasons):
            return True
        there = found.rows.is_valid()
        return any(pc.any(pc.and_(there, found.rows.field(e).is_null())).as_py() for e in self.keys)


def _of_columns(rows: pa.StructArray, names: tuple[str, ...]) -> pa.StructArray:
    if len(names) == rows.type.num_fields:
        return rows
    fields = [rows.type.field(each) for each in names]
    return pa.StructArray.from_arrays(
        [rows.field(each) for each in names], fields=fields, mask=rows.is_null()
    )


def _only(values: pa.Array, these: pa.BooleanArray) -> pa.Array:
    return pc.if_else(these, values, pa.scalar(None, values.type))


def absent(values: pa.Array) -> pa.StringArray:
    """The code of values that are null or empty, null for all others."""
    lengths = pc.binary_length(values)
    if not values.null_count and pc.min(lengths).as_py() != 0:  # as nearly always
        return pa.nulls(len(values), pa.string())
    empty = pc.if_else(pc.equal(lengths, 0), "RM602", pa.scalar(None, pa.string()))
    return pc.if_else(values.is_null(), "RM601", empty)
