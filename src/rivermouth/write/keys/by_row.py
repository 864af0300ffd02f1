"""Modes whose rows are those of single records: the newest one of each key, or the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rivermouth.warehouse.delta.partitions import values_of
from rivermouth.warehouse.delta.rows import read_columns
from rivermouth.write.files.data_files import NOTHING_PLACED, DataFile, Files, Placed
from rivermouth.write.files.writing import Written
from rivermouth.write.keys.effect import Effect, LeftToSpark, Live, live_of
from rivermouth.write.keys.entries import Entries, Fold, of_bytes
from rivermouth.write.keys.index import Found, KeyColumns, KeyIndex, Rows, gathered
from rivermouth.write.keys.settle import (
    NONE,
    FirstOrder,
    Integers,
    Mask,
    Order,
    numbers_of,
    orders,
)
from rivermouth.write.keys.untold import Untold, untold

FILLED_BYTES = 64 << 20
"""Of so many bytes in files, which are several times as many in memory, the driver fills rows."""


@dataclass(frozen=True)
class ByRow:
    """How rows land as files that tasks have folded by ``reduction``. ``keys`` are the columns."""

    keys: tuple[str, ...]
    reduction: Fold

    def columns(self, types: pa.Schema) -> KeyColumns:
        """What the index of the table holds; ``types`` are those of its columns."""
        return KeyColumns(self.keys, FirstOrder(self.reduction.order_by), types)

    def effect(self, written: Written, index: KeyIndex, files: Callable[[], Files]) -> Effect:
        """See ``ByFiles``: the driver writes rows that do not tell all of their values. Raises
        LeftToSpark.
        """
        entries = of_bytes(written.entries, index.columns.width)
        return effect_of(entries, self.reduction, index, written, files)


def effect_of(
    entries: Entries,
    fold: Fold,
    index: KeyIndex,
    written: Written,
    files: Callable[[], Files],
) -> Effect:
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
    lives = wins & ~gone
    partial = untold(changes, folded, np.flatnonzero(lives), apart=False)
    filling = Filling(entries, {e.name: e for e in written.good}, index, found, fold.order_by)
    stands = (there & ~deletes)[partial.groups]
    filled = filling.filled(partial, newest[partial.groups], stands, files)
    anew = newest[filled.groups]
    lives[filled.groups] = False
    live = newest[lives]
    return Effect(
        files=[*written.good, *filled.files],
        live={
            **_live(_placed(entries, live), entries, live, index),
            **_live(filled.placed, entries, anew, index),
        },
        dead=_dead(entries, live),
        found=found,
        gone=np.flatnonzero(goes),
        replaced=int((goes & wins & ~gone).sum()),
        changes=len(folded.first),
        made=[each.name for each in filled.files],
    )


def _placed(entries: Entries, these: Integers) -> Placed:
    return Placed(entries.files, entries.file[these], entries.changes.row[these])


def _live(placed: Placed, entries: Entries, live: Integers, index: KeyIndex) -> Mapping[str, Live]:
    width = index.columns.values.width
    order = _orders(entries, live)[:, None] if width else np.empty((len(live), 0), np.uint64)
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
        standing = index.rows(found, ties, fold.order_by)
        result[ties[entries.after(newest[ties], standing, fold.order_by)]] = True
    return result


@dataclass(frozen=True)
class Filled:
    """The rows of ``groups`` are written anew, into ``files``, where they are ``placed``."""

    groups: Integers
    placed: Placed
    files: Sequence[DataFile]


NOTHING_FILLED = Filled(np.empty(0, np.int64), NOTHING_PLACED, ())


@dataclass(frozen=True)
class Filling:
    """Fills newest rows of a batch: ``entries`` are its own, and ``files`` those of the tasks.

    ``found`` are the rows that stand, and ``order_by`` the columns that order rows.
    """

    entries: Entries
    files: Mapping[str, DataFile]
    index: KeyIndex
    found: Found
    order_by: tuple[str, ...]

    def filled(
        self, untold: Untold, newest: Integers, stands: Mask, into: Callable[[], Files]
    ) -> Filled:
        """What earlier rows tell: ``newest`` are the entries of the groups that are ``untold``, and
        ``stands`` says which of them have a row that stands and was not deleted by a tombstone.
        Raises LeftToSpark.
        """
        if not len(newest):
            return NOTHING_FILLED
        standing = np.flatnonzero(stands)
        if self._size(untold.groups[standing], newest) > FILLED_BYTES:
            raise LeftToSpark(
                "the rows that its events leave untold are too large: lower max_offsets_per_trigger"
            )
        names = [*self.order_by, *untold.lacks]
        old = self.index.rows(self.found, untold.groups[standing], names)
        counts = ~self._after(untold.floor[standing], old)
        sources, anew = dict[str, tuple[Integers, Integers]](), np.zeros(len(newest), np.bool_)
        for name, tells in untold.tells.items():
            ours = tells != NONE
            ours[standing] = self._after(tells[standing], old)
            theirs = standing[counts & untold.lacks[name][standing] & ~ours[standing]]
            sources[name] = np.flatnonzero(ours), theirs
            anew |= ours
            anew[theirs] = True
        if not anew.any():
            return NOTHING_FILLED
        rows = self._rows(newest)
        for name, (ours, theirs) in sources.items():
            told = self._rows(untold.tells[name][ours], name).column(name)
            column, number = rows.column(name), np.arange(len(newest))
            number[ours] = len(newest) + np.arange(len(ours))
            number[theirs] = len(newest) + len(ours) + np.searchsorted(standing, theirs)
            every = [column, told, old.column(name)]
            chunks = [part for each in every for part in each.cast(column.type).chunks]
            filled = pa.chunked_array(chunks, column.type).take(pa.array(number))
            rows = rows.set_column(rows.column_names.index(name), name, filled)
        groups = np.flatnonzero(anew)
        files = into()
        placed, done = files.placed(_one_batch(rows.take(pa.array(groups))))
        return Filled(untold.groups[groups], placed, [*done, *files.end()])

    def _size(self, groups: Integers, entries: Integers) -> float:
        """About how many bytes the rows of these have in their files."""
        theirs, ours = self.found.file[groups], self.entries.file[entries]
        files = [(self.index.file(each), theirs == each) for each in numbers_of(theirs)]
        of_tasks = [(self.entries.files[each], ours == each) for each in numbers_of(ours)]
        files += [(self.files[name].added, here) for name, here in of_tasks]
        return sum(file.size / max(file.rows or 1, 1) * int(here.sum()) for file, here in files)

    def _after(self, these: Integers, old: pa.Table) -> Mask:
        """Which entries there are, and come after the rows that stand."""
        there: Mask = these != NONE
        if self.order_by and there.any():
            places = np.flatnonzero(there)
            standing = old.take(pa.array(places))
            there[places] = self.entries.after(these[places], standing, self.order_by)
        return there

    def _rows(self, entries: Integers, *columns: str) -> pa.Table:
        """The rows of entries, in their order: some columns, or all."""
        if not len(entries):
            return pa.schema(map(self.index.columns.types.field, columns)).empty_table()
        row, names = self.entries.changes.row[entries], self.entries.files
        return gathered(
            self.entries.file[entries],
            lambda of, here: self._read(self.files[names[of]], row[here], columns),
        )

    def _read(self, file: DataFile, rows: Integers, columns: Sequence[str]) -> pa.Table:
        found = read_columns(self.index.log.store, file.name, columns or None, rows)
        for name, value in values_of(file.partition, self.index.columns.types).items():
            if not columns or name in columns:
                found = found.append_column(name, pa.repeat(value, len(rows)))
        return found


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    [batch] = rows.combine_chunks().to_batches()
    return batch
