"""Totals in Arrow: what tasks make of their records, and what a batch and a row make together.

What a batch adds is summed over its tasks, and added to what the index holds of the rows that
stand. So no row of the table is read.

A sum of whole numbers is made of two, of the bits above ``LOW_BITS`` and of those below: each of
them fits into 64 bits, whatever the order of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Measure
from rivermouth.write.files.data_files import Files, Placed
from rivermouth.write.files.writing import Written
from rivermouth.write.keys.effect import Effect, Overflows, live_of
from rivermouth.write.keys.entries import Reduced
from rivermouth.write.keys.index import KeyColumns, KeyIndex
from rivermouth.write.keys.runs import Words, digests
from rivermouth.write.keys.settle import Mask


@dataclass(frozen=True)
class TotalFold:
    """What tasks do: see ``entries.Reduction``. ``keys`` are the columns of the table."""

    keys: tuple[str, ...]
    totals: tuple[Total, ...]

    def reduced(self, decoded: pa.Table) -> Reduced:
        """See ``Reduction``: no row is written."""
        rows = decoded.combine_chunks()
        row = rows.column("row").chunk(0)
        columns = self._named(rows.column("key_columns").chunk(0).flatten())
        for each in self.totals:
            columns |= zip(each.parts, each.inputs(row), strict=True)
        found = self.summed(pa.table(columns))
        return Reduced(decoded.select(["row", "_kafka"]).slice(0, 0), partial(_bytes, found))

    def summed(self, parts: pa.Table) -> pa.Table:
        """One row for each key, of rows that have the keys and the parts of all totals."""
        names = [each for total in self.totals for each in total.parts]
        by = [f"key_{number}" for number in range(len(self.keys))]
        asked = [(each, each.partition("_")[0]) for each in names]
        found = parts.group_by(by, use_threads=False).aggregate(asked)
        made = [f"{name}_{how}" for name, how in asked]
        return found.select([*by, *made]).rename_columns([*by, *names])

    def _named(self, keys: Sequence[pa.Array]) -> dict[str, pa.Array]:
        return {f"key_{number}": each for number, each in enumerate(keys)}


def _bytes(told: pa.Table, placed: Placed) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, told.schema) as stream:
        stream.write_table(told)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class ByTotal:
    """How totals land as files."""

    keys: tuple[str, ...]
    reduction: TotalFold

    def columns(self, types: pa.Schema) -> KeyColumns:
        """See ``ByFiles``."""
        return KeyColumns(self.keys, TotalValues(self.reduction.totals), types)

    def effect(self, written: Written, index: KeyIndex, files: Callable[[], Files]) -> Effect:
        """See ``ByFiles``. Raises Overflows."""
        told = [pa.ipc.open_stream(each).read_all() for each in written.entries]
        if not told:
            return _nothing(index)
        added = self.reduction.summed(pa.concat_tables(told)).combine_chunks()
        names = [f"key_{number}" for number in range(len(self.keys))]
        words = digests([added.column(each).combine_chunks() for each in names])
        order = np.argsort(words[:, 0])  # an index is asked ten times as fast in its own order
        words, added = words[order], added.take(pa.array(order))
        keys = [added.column(each).combine_chunks() for each in names]
        found = index.find(words)
        totals = self._together(added, found.values, found.there)
        columns = [*zip(self.keys, keys, strict=True), *totals.items()]
        rows = pa.table(dict(columns)).select(index.columns.types.names)
        into, values = files(), index.columns.values.words(rows)
        placed, done = into.placed(rows.combine_chunks().to_batches()[0])
        done += into.end()
        return Effect(
            files=done,
            live=live_of(placed, words, values),
            dead={},
            found=found,
            gone=np.flatnonzero(found.there),
            replaced=int(found.there.sum()),
            changes=rows.num_rows,
            made=[each.name for each in done],
        )

    def _together(self, added: pa.Table, words: Words, there: Mask) -> dict[str, pa.Array]:
        """The totals of each key."""
        standing = TotalValues(self.reduction.totals).arrays(words)
        none, found, beyond = pa.array(~there), {}, list[pa.Array]()
        for total, old in zip(self.reduction.totals, standing, strict=True):
            before = pc.if_else(none, pa.scalar(None, old.type), old)
            parts = [added.column(each).combine_chunks() for each in total.parts]
            found[total.measure.name], over = total.value(parts, before)
            beyond.append(over)
        if reduce(pc.or_, beyond).true_count:
            raise Overflows("a total does not fit")
        return found


def _nothing(index: KeyIndex) -> Effect:
    none = np.empty(0, np.int64)
    found = index.find(np.empty((0, index.columns.width), np.uint64))
    return Effect([], {}, {}, found, none, 0, 0)


LOW_BITS = 32
_BITS = 64
"""Of a word of an index."""
_WIDE = 60  # digits of DECIMALs on the way: none of them overflows


@dataclass(frozen=True)
class Total:
    """One metric of a table, of which it is the one with the ``number``; ``kind`` is the type of
    its column.
    """

    number: int
    measure: Measure
    kind: pa.DataType

    @property
    def parts(self) -> tuple[str, ...]:
        """What tasks make of it: names that begin with the aggregate that does."""
        how = self.measure.function
        name = f"{how if how in ('min', 'max') else 'sum'}_{self.number}"
        return (f"{name}_high", f"{name}_low") if self._of_integers else (name,)

    @property
    def _of_integers(self) -> bool:
        return self.measure.function == "sum" and not pa.types.is_decimal(self.kind)

    def inputs(self, row: pa.StructArray) -> list[pa.Array]:
        """What is aggregated to the ``parts``, of each row."""
        measure = self.measure
        if measure.column is None:
            return [pa.array(np.ones(len(row), np.int64))]
        column = row.field(measure.column)
        if measure.function == "count":
            return [column.is_valid().cast(pa.int64())]
        if measure.function != "sum":
            return [column]
        if pa.types.is_decimal(column.type):
            return [_wide(column)]
        whole = column.cast(pa.int64())
        low = pa.scalar((1 << LOW_BITS) - 1, pa.int64())
        return [
            pc.shift_right(whole, pa.scalar(LOW_BITS, pa.int64())),
            pc.bit_wise_and(whole, low),
        ]

    def value(self, parts: Sequence[pa.Array], old: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The parts of a batch, together with the values that stand, null where there is none; and
        where that does not fit into the column.
        """
        function = self.measure.function
        never = pa.repeat(False, len(old))
        if function == "count":
            return pc.add(parts[0], pc.fill_null(old, 0)), never
        if function in ("min", "max"):
            pick = pc.min_element_wise if function == "min" else pc.max_element_wise
            found = pick(_plain(parts[0]), _plain(old))
            return found.cast(self.kind), never
        both = [_wide(old), self._sum(parts)]
        total = pc.coalesce(_added(*both), *both)
        most = (1 << 63) - 1 if self._of_integers else 10**self.kind.precision - 1
        least = -most - 1 if self._of_integers else -most
        scale = total.type.scale
        fits = pc.and_(
            pc.less_equal(total, _scalar(most, scale)),
            pc.greater_equal(total, _scalar(least, scale)),
        )
        fits = pc.fill_null(fits, True)
        kept = pc.if_else(fits, total, pa.scalar(None, total.type))
        return kept.cast(self.kind), pc.invert(fits)

    def _sum(self, parts: Sequence[pa.Array]) -> pa.Array:
        if not self._of_integers:
            return _wide(parts[0])
        high, low = (_wide(each) for each in parts)
        shifted = pc.multiply(high.cast(pa.decimal256(30, 0)), _scalar(1 << LOW_BITS, 0, 12))
        return _added(_wide(shifted), low)


def _plain(values: pa.Array) -> pa.Array:
    """Times as the numbers that they are: Arrow compares no times element by element."""
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _wide(values: pa.Array) -> pa.Array:
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    return values.cast(pa.decimal256(_WIDE, scale))


def _added(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.add(one, other).cast(one.type)


def _scalar(unscaled: int, scale: int, digits: int = _WIDE) -> pa.Scalar:
    """The number of so many units of the last digit."""
    raw = Decimal(unscaled).scaleb(-scale, Context(prec=digits))  # Python's own rounds to 28
    return pa.scalar(raw, pa.decimal256(digits, scale))


@dataclass(frozen=True)
class TotalValues:
    """What an index holds of a row of totals: all of them. See ``index.Values``.

    The first words have a bit for each total that is not null.
    """

    totals: tuple[Total, ...]

    @property
    def _masks(self) -> int:
        """How many words these bits take."""
        return -(-len(self.totals) // _BITS)

    @property
    def names(self) -> tuple[str, ...]:
        """See ``Values``."""
        return tuple(each.measure.name for each in self.totals)

    @property
    def width(self) -> int:
        """See ``Values``."""
        return self._masks + sum(map(_width, self.totals))

    def words(self, rows: pa.Table) -> Words:
        """See ``Values``."""
        there = [np.zeros(rows.num_rows, np.uint64) for _ in range(self._masks)]
        columns = list[npt.NDArray[np.uint64]]()
        for number, each in enumerate(self.totals):
            values = rows.column(each.measure.name).combine_chunks()
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            mask, bit = divmod(number, _BITS)
            there[mask] |= valid.astype(np.uint64) << np.uint64(bit)
            columns += _words(values, each.kind)
        return np.stack([*there, *columns], axis=1)

    def arrays(self, words: Words) -> list[pa.Array]:
        """The totals that ``words`` has told."""
        found, at = list[pa.Array](), self._masks
        for number, each in enumerate(self.totals):
            width = _width(each)
            mask, bit = divmod(number, _BITS)
            null = (words[:, mask] >> np.uint64(bit)) & np.uint64(1) == 0
            found.append(_array(words[:, at : at + width], null, each.kind))
            at += width
        return found


def _width(total: Total) -> int:
    return 2 if pa.types.is_decimal(total.kind) else 1


def _words(values: pa.Array, kind: pa.DataType) -> list[npt.NDArray[np.uint64]]:
    if pa.types.is_decimal(kind):
        plain = pc.fill_null(values.cast(pa.decimal128(38, kind.scale)), 0)
        both = np.frombuffer(plain.buffers()[1], np.uint64)[2 * plain.offset :]
        pairs = both[: 2 * len(plain)].reshape(-1, 2)
        return [pairs[:, 0].copy(), pairs[:, 1].copy()]
    whole = values.cast(pa.int32()) if pa.types.is_date32(kind) else values
    return [pc.fill_null(whole.cast(pa.int64()), 0).to_numpy().view(np.uint64)]


def _array(words: Words, null: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        data = pa.py_buffer(np.ascontiguousarray(words))
        wide = pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(words), [None, data])
        return pc.if_else(pa.array(null), pa.scalar(None, wide.type), wide).cast(kind)
    whole = pa.array(np.ascontiguousarray(words[:, 0]).view(np.int64), mask=null)
    narrow = whole.cast(pa.int32()) if pa.types.is_date32(kind) else whole
    return narrow.cast(kind)
