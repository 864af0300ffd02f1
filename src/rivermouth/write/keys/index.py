"""Where the live row of each key of a table is, and what is compared of it.

Never trusted over the log: it stands for the version that its log has followed, and a place counts
only if that version has the file, and the row is not in the file's deletion vector. What another
writer adds is read from the key columns of its files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from rivermouth.storage.store import STORE_FAULTS, Store
from rivermouth.warehouse.delta.actions import AddFile
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.partitions import values_of
from rivermouth.warehouse.delta.rows import as_table, read_columns
from rivermouth.warehouse.delta.vectors import Vector, VectorUnreadable, of_rows, read_vector
from rivermouth.write.keys.runs import (
    AT_ONCE,
    NOWHERE,
    Manifest,
    Places,
    Run,
    Runs,
    Shelf,
    Stored,
    Words,
    digests,
    sorted_run,
    width_of,
)
from rivermouth.write.keys.settle import Integers, Mask, numbers_of

Rows = npt.NDArray[np.uint64]
"""Numbers of rows in a file."""

_FILE = np.uint64(32)
_ROW = np.uint64(0xFFFF_FFFF)
LARGE = 1 << 17
"""A run of so many keys is put on the disk."""
_PLACE = (("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()))
_KAFKA = pa.field("_kafka", pa.struct(_PLACE))
_FORMAT = 1
"""To be raised where digests, orders or runs are made in another way."""


class Values(Protocol):
    """What an index holds of each row beside its key: numbers of 64 bits, made of some columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def width(self) -> int:
        """How many words."""

    def words(self, rows: pa.Table) -> Words:
        """Those of rows that have the columns."""


@dataclass(frozen=True)
class KeyColumns:
    """The columns of a table that its index knows: those of the ``keys``, and those of ``values``.

    ``types`` are their Arrow types.
    """

    keys: tuple[str, ...]
    values: Values
    types: pa.Schema

    @property
    def width(self) -> int:
        """How many words the digest of a key has."""
        return width_of([self.types.field(each).type for each in self.keys])

    @property
    def schema(self) -> pa.Schema:
        """The columns, each once."""
        return pa.schema(map(self.types.field, dict.fromkeys((*self.keys, *self.values.names))))

    def read(self, store: Store, file: AddFile) -> tuple[Words, Integers, Words]:
        """What ``of`` tells of the rows of a data file."""
        return self.of(self.typed(store, file, self.schema))

    def of(self, table: pa.Table) -> tuple[Words, Integers, Words]:
        """The digests of the keys in rows of our types, the numbers of these, and their values.

        A row without a value in a key column has no key, and is left out.
        """
        columns = [table.column(each).combine_chunks() for each in self.keys]
        rows = np.arange(table.num_rows)
        if any(each.null_count for each in columns):
            there = reduce(pc.and_, [each.is_valid() for each in columns])
            rows = np.flatnonzero(there.to_numpy(zero_copy_only=False))
            table = table.take(pa.array(rows))
            columns = [table.column(each).combine_chunks() for each in self.keys]
        return digests(columns), rows, self.values.words(table)

    def typed(
        self, store: Store, file: AddFile, fields: Iterable[pa.Field], rows: Rows | None = None
    ) -> pa.Table:
        """These columns of a data file, null where it lacks them: they came to the table later.
        Of all ``rows``, or of some of them.

        Those that the table is partitioned by are in the log. Another writer may keep texts and
        times in another way: they have the types of ``fields``.
        """
        schema = pa.schema(fields)
        partition = values_of(file.partition, schema)
        names = [name for each in schema for name in _names(each)]
        read = read_columns(store, file.path, names, rows)
        made = (as_table(each, schema, partition) for each in read.to_batches())
        return pa.Table.from_batches(made, schema)


@dataclass(frozen=True)
class Found:
    """For each key asked for: the number of the file, and the row in it, of its live row.

    ``there`` is False where it has none. ``values``: see ``Values``.
    """

    there: Mask
    file: Integers
    row: Rows
    values: Words


def gathered(files: Integers, read: Callable[[int, Integers], pa.Table]) -> pa.Table:
    """What ``read`` gives of each file, for the numbers of its rows among all, in their order."""
    parts = [(of, np.flatnonzero(files == of)) for of in numbers_of(files)]
    whole = pa.concat_tables([read(of, here) for of, here in parts])
    return whole.take(pa.array(np.argsort(np.concatenate([here for _, here in parts]))))


class KeyIndex:
    """The index of one table, whose large runs lie on a ``shelf``.

    ``progress`` hears of files that are read, and of all there are.
    """

    def __init__(
        self,
        log: DeltaLog,
        columns: KeyColumns,
        shelf: Shelf | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.log, self.columns, self._shelf, self._progress = log, columns, shelf, progress
        self._runs = Runs(columns.values.width, kept=self._put)
        self._stored, self._saved = dict[Run, Stored](), set[Run]()
        self._numbers, self._paths = dict[str, int](), list[str]()
        self._files = dict[str, AddFile]()
        self._deleted = dict[str, tuple[Vector, BitMap64]]()
        self._began = False

    def follow(self) -> None:
        """Take what the log has that was followed. Raises what reading the files does."""
        if not self._began:
            self._restore()
            self._began = True
        current = self.log.state.current
        if current == self._files:
            return
        new = [each for path, each in current.items() if self._is_news(path, each)]
        self._files = current
        for gone in self._deleted.keys() - current.keys():
            del self._deleted[gone]
        for done, each in enumerate(new, 1):
            self._load(each)
            self._progress(done, len(new))
        self._runs.settle()
        self._keep()

    def find(self, keys: Words) -> Found:
        """Where the live rows of these keys are, in the version that was followed last."""
        places, values = self._runs.find(keys)
        there = places != NOWHERE
        files = np.where(there, places >> _FILE, 0).astype(np.int64)
        rows = np.where(there, places & _ROW, 0).astype(np.uint64)
        for number in numbers_of(files[there]):
            here = np.flatnonzero(there & (files == number))
            path = self._paths[number]
            if path not in self._files:
                there[here] = False
                continue
            deleted = self.deleted(path)
            if len(deleted):
                dead = of_rows(rows[here]) & deleted
                gone = np.fromiter(dead, np.uint64, len(dead))
                there[here[np.isin(rows[here], gone)]] = False
        return Found(there, files, rows, values)

    def rows(self, found: Found, these: Integers, columns: Iterable[str]) -> pa.Table:
        """The live rows of ``these`` keys, in their order, each of which is there: some columns,
        and the place of the record in ``_kafka``.
        """
        fields = [*map(self.columns.types.field, columns), _KAFKA]
        files, rows = found.file[these], found.row[these]
        if not len(these):
            return pa.schema(fields).empty_table()
        store = self.log.store
        read = gathered(
            files, lambda of, here: self.columns.typed(store, self.file(of), fields, rows[here])
        )
        return read.combine_chunks()

    def file(self, number: int) -> AddFile:
        """The file with a number of ``Found``, as the log has it."""
        return self._files[self._paths[number]]

    def deleted(self, path: str) -> BitMap64:
        """The rows of a file that are deleted, in the version that was followed last."""
        return self.deleted_of(self._files[path])

    def deleted_of(self, file: AddFile) -> BitMap64:
        """The rows of a file that are deleted. It is not to be changed."""
        path, vector = file.path, file.vector
        if vector is None:
            return BitMap64()
        known = self._deleted.get(path)
        if known is None or known[0] != vector:
            known = (vector, read_vector(self.log.store, vector))
            self._deleted[path] = known
        return known[1]

    def committed(
        self,
        added: Mapping[str, Run],
        deleted: Mapping[Vector, BitMap64],
    ) -> None:
        """A commit of ours stands: the log has its files, and the index need not read them.

        ``added`` are the keys of each new file, their places the numbers of its live rows;
        ``deleted`` is what each new vector says.
        """
        current = self.log.state.current
        for path, each in current.items():
            if each.vector is not None and each.vector in deleted:
                self._deleted[path] = (each.vector, deleted[each.vector])
        for path, run in added.items():
            self._add(path, run)
        self._files = current  # at last: files that an error has kept from it are read again
        self._keep()

    def close(self) -> None:
        """Keep all that a restart would read again: a last compaction makes one large new file."""
        self._runs.settle()
        self._keep()

    def _is_news(self, path: str, file: AddFile) -> bool:
        """Whether rows of the file may be live that the index does not know of.

        Rows that were deleted since are no news. Rows that are live again, after a RESTORE, are.
        """
        before = self._files.get(path)
        if before is None:
            return True
        if before.vector == file.vector or before.vector is None:
            return False
        try:
            known = self.deleted(path)
        except (*STORE_FAULTS, VectorUnreadable):  # it may be removed once it no longer counts
            return True
        now = BitMap64() if file.vector is None else read_vector(self.log.store, file.vector)
        return not known.issubset(now)

    def _load(self, file: AddFile) -> None:
        keys, rows, values = self.columns.read(self.log.store, file)
        deleted = self.deleted(file.path)
        if len(deleted):
            live = ~np.isin(rows, np.fromiter(deleted, np.int64, len(deleted)))
            keys, rows, values = keys[live], rows[live], values[live]
        self._add(file.path, sorted_run(keys, rows.astype(np.uint64), values))

    def _add(self, path: str, run: Run) -> None:
        places: Places = (np.uint64(self._number(path)) << _FILE) | run.places
        self._runs.add(replace(run, places=places))

    @property
    def _identity(self) -> str:
        """What tells this index from any other one."""
        keys, values = self.columns.keys, self.columns.values
        types = [str(self.columns.types.field(each).type) for each in (*keys, *values.names)]
        table = self.log.state.metadata.get("id")
        return json.dumps([_FORMAT, table, keys, values.names, values.width, types])

    def _restore(self) -> None:
        """Begin with what is on the shelf."""
        found = self._shelf.load(self._identity) if self._shelf is not None else None
        if found is None:
            return
        manifest, runs = found
        self._runs = Runs(self.columns.values.width, runs, self._put)
        self._stored = dict(zip(runs, manifest.runs, strict=True))
        self._saved = {*runs}
        self._paths = [*manifest.files]
        self._numbers = {path: number for number, path in enumerate(self._paths)}
        for path, said in manifest.vectors.items():
            vector = None if said is None else Vector.of(said)
            self._files[path] = AddFile(path, 0, 0, vector=vector)

    def _keep(self) -> None:
        """Put runs that have become large on the shelf. Nothing depends on it."""
        if self._runs.busy:
            return
        for each in [e for e in self._runs if e not in self._stored and len(e) <= AT_ONCE]:
            self._runs.replace(each, self._put(each))
        stored = {each for each in self._runs if each in self._stored}
        if self._shelf is None or stored <= self._saved:
            return
        with suppress(OSError):
            self._shelf.save(self._manifest())
            self._saved = stored

    def _put(self, run: Run) -> Run:
        """The run as it is to be held: on the shelf, if it is large."""
        if self._shelf is None or len(run) < LARGE:
            return run
        try:
            mapped, stored = self._shelf.put(run)
        except OSError:
            return run
        self._stored[mapped] = stored
        return mapped

    def _manifest(self) -> Manifest:
        self._stored = {each: self._stored[each] for each in self._runs if each in self._stored}
        left = [each for each in self._runs if each not in self._stored]
        uncovered = {
            self._paths[number]
            for run in left
            for number in np.unique(run.places[run.places != NOWHERE] >> _FILE).tolist()
        }
        vectors = {
            path: None if each.vector is None else each.vector.as_dict()
            for path, each in self._files.items()
            if path not in uncovered
        }
        return Manifest(self._identity, self._paths, vectors, [*self._stored.values()])

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = len(self._paths)
            self._paths.append(path)
        return self._numbers[path]


def _names(column: pa.Field) -> list[str]:
    """The column, or those of its fields that are asked for."""
    if not pa.types.is_struct(column.type):
        return [column.name]
    return [f"{column.name}.{each.name}" for each in column.type]
