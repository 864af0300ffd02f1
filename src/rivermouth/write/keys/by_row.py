"""Modes whose rows are those of single records: the newest one of each key, or the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rivermouth.write.files.data_files import Files, Placed
from rivermouth.write.files.writing import Written
from rivermouth.write.keys.effect import Effect, LeftToSpark, Live, live_of
from rivermouth.write.keys.entries import Entries, Fold, of_bytes
from rivermouth.write.keys.index import Found, KeyColumns, KeyIndex, Rows
from rivermouth.write.keys.settle import (
    NONE,
    FirstOrder,
    Integers,
    Mask,
    Order,
    compared,
    numbers_of,
    orders,
)

_PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True)
class ByRow:
    """How rows land as files that tasks have folded by ``reduction``. ``keys`` are the columns."""

    keys: tuple[str, ...]
    reduction: Fold

    def columns(self, types: pa.Schema) -> KeyColumns:
        """What the index of the table holds; ``types`` are those of its columns."""
        return KeyColumns(self.keys, FirstOrder(self.reduction.order_by), types)

    def effect(self, written: Written, index: KeyIndex, files: Callable[[], Files]) -> Effect:
        """See ``ByFiles``: the driver writes none. Raises LeftToSpark."""
        entries = of_bytes(written.entries, index.columns.width)
        return effect_of(entries, self.reduction, index, written)


def effect_of(entries: Entries, fold: Fold, index: KeyIndex, written: Written) -> Effect:
    """What entries do: of each key in the batch one row wins, and comes after that which stands."""
    changes = entries.changes
    folded = fold(changes)
    found = index.find(changes.keys[folded.first])
    newest, there, deletes = folded.newest, found.there, folded.tombstone != NONE
    has = newest != NONE
    gone = has & changes.gone[newest]
    if fold.first:
        wins = has & ~there
    elif fold.order_by:
        wins = has & (~there | deletes)
        wins |= _newer(entries, newest, found, has & ~wins, fold, index)
    else:
        wins = has
    goes = there & (wins | (~has & deletes))
    live = newest[wins & ~gone]
    if changes.partial is not None and changes.partial[live].any():
        raise LeftToSpark  # it has to look at the rows that stand
    return Effect(
        files=written.good,
        live=_live(entries, live, index),
        dead=_dead(entries, live),
        found=found,
        gone=np.flatnonzero(goes),
        replaced=int((goes & wins & ~gone).sum()),
        changes=len(folded.first),
    )


def _live(entries: Entries, live: Integers, index: KeyIndex) -> Mapping[str, Live]:
    width = index.columns.values.width
    order = _orders(entries, live)[:, None] if width else np.empty((len(live), 0), np.uint64)
    placed = Placed(entries.files, entries.file[live], entries.changes.row[live])
    return live_of(placed, entries.changes.keys[live], order)


def _dead(entries: Entries, live: Integers) -> Mapping[str, Rows]:
    """The rows that were written for nothing."""
    changes, file = entries.changes, entries.file
    left = changes.row != NONE
    left[live] = False
    dead = np.flatnonzero(left)
    return {
        entries.files[number]: changes.row[dead[file[dead] == number]].astype(np.uint64)
        for number in numbers_of(file[dead])
    }


def _orders(entries: Entries, these: Integers) -> Order:
    if not len(these):
        return np.empty(0, np.uint64)
    return orders(entries.changes.order_by[0].take(pa.array(these)))


def _newer(
    entries: Entries, newest: Integers, found: Found, asked: Mask, fold: Fold, index: KeyIndex
) -> Mask:
    """Which newest rows, of the keys ``asked``, come after the row that stands.

    By the numbers that the index holds; where these are equal, by the values themselves.
    """
    keys = np.flatnonzero(asked)
    ours, theirs = _orders(entries, newest[keys]), found.values[keys, 0]
    result = np.zeros(len(newest), np.bool_)
    result[keys[ours > theirs]] = True
    ties = keys[ours == theirs]
    if len(ties):
        rank = _rank(entries, newest[ties])
        standing = index.rows(found, ties, fold.order_by)
        other = [standing.column(each).combine_chunks() for each in fold.order_by]
        kafka = standing.column("_kafka").combine_chunks()
        other += [kafka.field(each) for each in _PLACE]
        result[ties[compared(rank, other, len(ties)) > 0]] = True
    return result


def _rank(entries: Entries, these: Integers) -> Sequence[pa.Array]:
    changes = entries.changes
    topics = pa.array(entries.topics, pa.string()).take(pa.array(changes.topic[these]))
    place = [pa.array(each[these]) for each in (changes.partition, changes.offset)]
    return [*(each.take(pa.array(these)) for each in changes.order_by), topics, *place]
