"""What a batch leaves of each key: the rows of the batch that count, and those they replace.

Tasks have written rows into files that nobody sees yet, at most one for each key of each partition
of Kafka and each part of it that was read at once. The driver settles the rest: what several of
these hold of one key, and the row that stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.write.keys.runs import Words

Signs = npt.NDArray[np.int8]
"""-1, 0 or 1 for each row: below, equal, above."""
Order = npt.NDArray[np.uint64]
"""A number for each value that is not above that of a greater value."""

_SIGN = np.uint64(1 << 63)
_TEXT = 8


def compared(ones: Sequence[pa.Array], others: Sequence[pa.Array], rows: int) -> Signs:
    """How ``rows`` rows stand to as many others, column by column; the first difference decides."""
    found = np.zeros(rows, np.int8)
    for one, other in zip(ones, others, strict=True):
        left = found == 0
        if not left.any():
            break
        found = np.where(left, _signs(one, other), found)
    return found


def orders(values: pa.Array) -> Order:
    """A number for each value: of two that differ, the values stand in the same order.

    Equal numbers tell nothing. It is what an index holds of a row, in eight bytes.
    """
    found, there = _orders(values), mask(values.is_valid())
    return np.where(there, found, np.uint64(0))


@dataclass(frozen=True)
class FirstOrder:
    """What an index holds of rows that are ordered by ``columns``: the order of the first one.

    See ``index.Values``.
    """

    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """See ``Values``."""
        return self.columns[:1]

    @property
    def width(self) -> int:
        """See ``Values``."""
        return len(self.names)

    def words(self, rows: pa.Table) -> npt.NDArray[np.uint64]:
        """See ``Values``."""
        every = [orders(rows.column(each).combine_chunks()) for each in self.names]
        return np.stack(every, axis=1) if every else np.empty((rows.num_rows, 0), np.uint64)


def _orders(values: pa.Array) -> Order:
    kind = values.type
    if pa.types.is_boolean(kind):
        return mask(values).astype(np.uint64)
    if pa.types.is_floating(kind):
        return _of_floats(pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy())
    if pa.types.is_decimal(kind):
        return _of_decimals(pc.fill_null(values.cast(pa.decimal128(38, kind.scale)), 0))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_bytes(values.cast(pa.large_binary()))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _of_bytes(values.cast(pa.large_binary()))
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    whole: npt.NDArray[np.int64] = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    found: Order = whole.view(np.uint64) ^ _SIGN
    return found


def _of_floats(values: npt.NDArray[np.float64]) -> Order:
    bits = (np.where(np.isnan(values), np.inf, values) + 0.0).view(np.uint64)
    found = np.where(bits >> np.uint64(63) == 1, ~bits, bits | _SIGN)
    return np.where(np.isnan(values), np.uint64(0xFFFF_FFFF_FFFF_FFFF), found)


def _of_decimals(values: pa.Array) -> Order:
    """The unscaled value, cut to what 64 bits hold."""
    every = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset :]
    low, high = every[0 : 2 * len(values) : 2], every[1 : 2 * len(values) : 2]
    fits = high == low >> 63
    cut = np.where(high < 0, np.uint64(0), np.uint64(0xFFFF_FFFF_FFFF_FFFF))
    found: Order = np.where(fits, low.astype(np.uint64) ^ _SIGN, cut)
    return found


def _of_bytes(values: pa.Array) -> Order:
    """The first eight bytes."""
    found = np.zeros(len(values), np.uint64)
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data = values.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    for each in range(_TEXT):
        inside = offsets[:-1] + each < offsets[1:]
        at = offsets[:-1][inside] + each
        found[inside] |= content[at].astype(np.uint64) << np.uint64(8 * (_TEXT - 1 - each))
    return found


def _signs(one: pa.Array, other: pa.Array) -> Signs:
    one, other = _comparable(one), _comparable(other)
    above = mask(pc.greater(one, other))
    below = mask(pc.less(one, other))
    above |= mask(one.is_valid()) & ~mask(other.is_valid())
    below |= ~mask(one.is_valid()) & mask(other.is_valid())
    if pa.types.is_floating(one.type):
        nan, none = mask(pc.is_nan(one)), mask(pc.is_nan(other))
        above |= nan & ~none
        below |= none & ~nan & mask(one.is_valid())
        above &= ~(none & ~nan)
    return above.astype(np.int8) - below.astype(np.int8)


def _comparable(column: pa.Array) -> pa.Array:
    """Booleans as numbers; texts as bytes, by which Spark orders them."""
    if pa.types.is_boolean(column.type):
        return column.cast(pa.uint8())
    return column.cast(pa.large_binary()) if pa.types.is_string(column.type) else column


def mask(found: pa.Array) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return there


NONE = -1
"""The row of a change that has none, and the offset of a tombstone that there is not."""

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Changes:
    """Entries, each of one key.

    ``row`` is where the row of an entry is, in whatever holds it; ``NONE`` where it has none.
    ``topic`` is the place of the topic in the order of their names; ``offset`` that of the record
    of the row. ``tombstone`` is the offset of the last tombstone of the key in what the entry
    stands for; ``NONE``: there is none. ``order_by`` are the values of the row, null where there is
    none. ``gone``: instead of a row the entry has a deletion that is ordered as a row is. ``kept``:
    the columns, as lists of names, whose values the row does not tell, since they stay; null, or
    None for all rows: it tells all.
    """

    keys: Words
    row: Integers
    topic: Integers
    partition: Integers
    offset: Integers
    tombstone: Integers
    gone: Mask
    order_by: Sequence[pa.Array] = ()
    kept: pa.ListArray | None = None

    def __len__(self) -> int:
        return len(self.row)

    @property
    def places(self) -> Integers:
        """A number for each partition of Kafka."""
        return self.topic << 32 | self.partition


@dataclass(frozen=True)
class Folded:
    """What is left of each group of entries: the one whose row, or deletion, counts; else ``NONE``.

    ``first`` is any entry of the group. ``tombstone`` is the offset of the last tombstone in the
    group, of whatever partition; ``NONE``: there is none.
    """

    first: Integers
    newest: Integers
    tombstone: Integers


def latest(changes: Changes, *, apart: bool = False) -> Folded:
    """The newest row of each key, by ``order_by``, topic, partition and offset.

    A row that came before a tombstone of its key in the same partition does not count. ``apart``:
    of each key in each partition of Kafka.
    """
    first, group = groups_of(changes, apart=apart)
    tombstone = np.full(len(first), NONE)
    there = changes.tombstone != NONE
    np.maximum.at(tombstone, group[there], changes.tombstone[there])
    alive = np.flatnonzero(alive_of(changes, group))
    return Folded(first, _best(alive, group, len(first), Rank(changes)), tombstone)


def earliest(changes: Changes, *, apart: bool = False) -> Folded:
    """The first row of each key, by topic, partition and offset."""
    first, group = groups_of(changes, apart=apart)
    alive = np.flatnonzero(changes.row != NONE)
    found = _best(alive, group, len(first), Rank(changes, backwards=True))
    return Folded(first, found, np.full(len(first), NONE))


def numbers_of(values: Integers) -> list[int]:
    """The small numbers that occur, each once, in order."""
    found: list[int] = np.flatnonzero(np.bincount(values)).tolist()
    return found


def groups_of(changes: Changes, *, apart: bool) -> tuple[Integers, Integers]:
    """An entry of each group, and the group of each entry."""
    first, group = grouped(changes.keys)
    places = changes.places
    if apart and len(places) and (places != places[0]).any():
        return _with_places(changes, group)
    return first, group


def _with_places(changes: Changes, group: Integers) -> tuple[Integers, Integers]:
    """An entry of each group in each partition of Kafka, and which of these each entry is in."""
    alone = (np.bincount(group) == 1)[group]  # as nearly all are: the others alone are sorted
    several, number = np.flatnonzero(~alone), int(np.count_nonzero(alone))
    found = np.empty(len(group), np.int64)
    found[alone] = np.arange(number)
    _, place = np.unique(changes.places[several], return_inverse=True)
    both = group[several] * (int(place.max(initial=0)) + 1) + place.reshape(-1)
    found[several] = number + np.unique(both, return_inverse=True)[1].reshape(-1)
    first = np.empty(int(found.max(initial=-1)) + 1, np.int64)
    first[found] = np.arange(len(found))
    return first, found


def grouped(keys: Words) -> tuple[Integers, Integers]:
    """An entry of each key, and the group of each entry; in the order of the keys."""
    order = np.argsort(keys[:, 0])
    ordered = keys[order]
    other = ordered[1:, 0] != ordered[:-1, 0]
    if keys.shape[1] > 1 and (~other & (ordered[1:, 1] != ordered[:-1, 1])).any():
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # two keys share a word: hardly ever
        ordered = keys[order]
        other = (ordered[1:] != ordered[:-1]).any(axis=1)
    begins = np.concatenate(([True], other)) if len(order) else np.zeros(0, np.bool_)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[begins], group


def alive_of(changes: Changes, group: Integers) -> Mask:
    """Which entries have a row, or a deletion, that came before no tombstone of their key."""
    alive: Mask = ((changes.row != NONE) | changes.gone) & ~_before_a_tombstone(changes, group)
    return alive


def _before_a_tombstone(changes: Changes, group: Integers) -> Mask:
    """Which rows came before a tombstone of their key in the same partition of Kafka."""
    there = changes.tombstone != NONE
    if not there.any():
        return np.zeros(len(changes), np.bool_)
    first, both = _with_places(changes, group)
    last = np.full(len(first), NONE)
    np.maximum.at(last, both[there], changes.tombstone[there])
    before: Mask = changes.offset < last[both]
    return before


@dataclass(frozen=True)
class Rank:
    """The order of entries. ``backwards``: by their place alone, the first one last."""

    changes: Changes
    backwards: bool = False

    def sorted(self, entries: Integers) -> Integers:
        """These entries in order."""
        changes = self.changes
        columns: list[npt.NDArray[np.generic]] = []
        for each in () if self.backwards else changes.order_by:
            values = each.take(pa.array(entries))
            columns += [values.is_valid().to_numpy(zero_copy_only=False), dense_ranks(values)]
        place = [e[entries] for e in (changes.topic, changes.partition, changes.offset)]
        found = entries[np.lexsort(tuple(reversed([*columns, *place])))]
        return found[::-1] if self.backwards else found


def _best(alive: Integers, group: Integers, groups: int, rank: Rank) -> Integers:
    """The last one of each group's entries that are ``alive``; ``NONE`` where there is none."""
    best = np.full(groups, NONE)
    single = np.bincount(group[alive], minlength=groups)[group[alive]] == 1
    best[group[alive[single]]] = alive[single]
    several = alive[~single]
    if len(several):
        ranked = rank.sorted(several)
        best[group[ranked]] = ranked  # of several in one group the last assignment stays
    return best


def dense_ranks(values: pa.Array) -> Integers:
    """Numbers that are ordered as the values; those of nulls mean nothing."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if pa.types.is_floating(values.type):  # -0.0 is 0.0, and NaN is above all
        plain = pc.add(values, pa.scalar(0.0, values.type))
        ranks = pc.rank(pc.if_else(pc.is_nan(plain), None, plain), tiebreaker="dense")
        found: Integers = ranks.to_numpy().astype(np.int64)
        found[pc.is_nan(values).fill_null(False).to_numpy(zero_copy_only=False)] = len(values) + 1
        return found
    ranks = pc.rank(values, tiebreaker="dense")
    return np.asarray(ranks.to_numpy()).astype(np.int64)
