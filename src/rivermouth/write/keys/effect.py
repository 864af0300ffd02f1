"""How changes by key land as files: what tasks do, and what the driver makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.partitions import Partition, values_of
from rivermouth.warehouse.delta.vectors import Vector, of_rows, vector_file
from rivermouth.write.files.data_files import DataFile, Files, Placed
from rivermouth.write.files.writing import Written
from rivermouth.write.keys.entries import Reduction
from rivermouth.write.keys.index import Found, KeyColumns, KeyIndex, Rows
from rivermouth.write.keys.runs import NOWHERE, Run, Words, merged, sorted_run
from rivermouth.write.keys.settle import NONE, Integers, numbers_of


@dataclass(frozen=True)
class Live:
    """The rows of one new file that stay: the digests of their keys, where they are in it, and what
    the index holds of them.
    """

    keys: Words
    rows: Rows
    values: Words


def live_of(placed: Placed, keys: Words, values: Words) -> Mapping[str, Live]:
    """Rows of new files that stay, by the names of these."""
    found = {}
    for number in numbers_of(placed.file):
        here = np.flatnonzero(placed.file == number)
        rows: Rows = placed.row[here].astype(np.uint64)
        found[placed.files[number]] = Live(keys[here], rows, values[here])
    return found


@dataclass(frozen=True)
class Effect:
    """``files`` are written. ``live`` are their rows that stay, and ``dead`` those that were
    written for nothing, by the names of files. ``gone`` are the keys of ``found`` whose standing
    row is deleted; so many of them get another one: ``replaced``. ``changes``: keys in the batch.
    ``made`` are names of ``files`` that the driver wrote.
    """

    files: Sequence[DataFile]
    live: Mapping[str, Live]
    dead: Mapping[str, Rows]
    found: Found
    gone: Integers
    replaced: int
    changes: int
    made: Collection[str] = ()


@dataclass(frozen=True)
class Change:
    """What a commit says of files, and what the index is told once it stands.

    ``made`` are the objects that the driver wrote for it alone.
    """

    commit: Commit
    deleted: Mapping[Vector, BitMap64]
    live: Mapping[str, Live]
    made: Collection[str] = ()

    def stands(self, index: KeyIndex) -> None:
        """The commit is in the log: let the index know of its rows."""
        added = {name: sorted_run(e.keys, e.rows, e.values) for name, e in self.live.items()}
        index.committed(added, self.deleted)


def change_of(effect: Effect, index: KeyIndex) -> Change:
    """The change that an effect makes; its deletion vectors are in the store.

    A file of which no row is left is no longer in the table, or never will be. Raises what the
    store does.
    """
    files = {each.name: each.added for each in effect.files}
    standing = _standing(effect, index)
    marks = [(files[name], of_rows(rows)) for name, rows in effect.dead.items()]
    marks += [(each, index.deleted(each.path) | rows) for each, rows in standing.items()]
    left = [(file, rows) for file, rows in marks if len(rows) != file.rows]
    marked, deleted = _marked(left, index)
    added = [*(each for name, each in files.items() if name not in effect.dead), *marked]
    made = {*effect.made, *(str(each.file) for each in deleted)}
    return Change(_commit(effect, added, [*standing]), deleted, effect.live, made)


def _standing(effect: Effect, index: KeyIndex) -> dict[AddFile, BitMap64]:
    """The rows that go of files of the table."""
    number, row = effect.found.file[effect.gone], effect.found.row[effect.gone]
    return {index.file(each): of_rows(row[number == each]) for each in numbers_of(number)}


def _marked(
    files: Sequence[tuple[AddFile, BitMap64]], index: KeyIndex
) -> tuple[list[AddFile], dict[Vector, BitMap64]]:
    """These files with vectors that delete these rows."""
    if not files:
        return [], {}
    content, vectors = vector_file(uuid4(), [rows for _, rows in files])
    index.log.store.create(str(vectors[0].file), content)
    marked = [file.marked(vector) for (file, _), vector in zip(files, vectors, strict=True)]
    return marked, {vector: rows for (_, rows), vector in zip(files, vectors, strict=True)}


def _commit(effect: Effect, added: Sequence[AddFile], removed: Sequence[AddFile]) -> Commit:
    live = sum(len(each.rows) for each in effect.live.values())
    metrics = {
        "numSourceRows": effect.changes,
        "numTargetRowsInserted": live - effect.replaced,
        "numTargetRowsUpdated": effect.replaced,
        "numTargetRowsDeleted": len(effect.gone) - effect.replaced,
        "numTargetFilesAdded": len(added),
        "numTargetFilesRemoved": len(removed),
    }
    return Commit("MERGE", added=added, removed=removed, metrics=metrics)


class LeftToSpark(Exception):
    """Spark has to land the batch: a value of a row would not fit into its column, so that the
    records of its key are bad; or rows that do not tell all of their values are too large for the
    driver; or files of the table lie elsewhere, as those of a shallow clone.
    """


class Overflows(LeftToSpark):
    """The totals of some keys do not fit: the records of these have to be found."""


class ByFiles(Protocol):
    """One mode of rows by key, as files."""

    @property
    def reduction(self) -> Reduction:
        """What tasks do with their records."""

    def columns(self, types: pa.Schema) -> KeyColumns:
        """What the index of the table holds; ``types`` are those of the table's columns."""

    def effect(self, written: Written, index: KeyIndex, files: Callable[[], Files]) -> Effect:
        """What the tasks' files do to the table that the index has followed.

        ``files`` are those that the driver may write itself. Raises LeftToSpark.
        """


class MovedKeys:
    """Notes the keys of the rows that a job writes; see ``files.compaction.Witness``."""

    def __init__(self, index: KeyIndex, partition: Partition) -> None:
        self._index, self._partition = index, partition
        self._files = dict[str, _Keys]()

    def wrote(self, file: str, rows: pa.RecordBatch) -> None:
        """See ``Witness``."""
        columns = self._index.columns
        for name, value in values_of(self._partition, columns.schema).items():
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        self._files.setdefault(file, _Keys()).take(rows, columns)

    def wrote_all(self) -> None:
        """See ``Witness``."""
        for each in self._files.values():
            each.sort()

    def stands(self, dead: Mapping[str, BitMap64], vectors: Mapping[Vector, BitMap64]) -> None:
        """See ``Witness``."""
        live = {file: self._files[file].live(rows) for file, rows in dead.items()}
        self._index.committed(live, vectors)


@dataclass
class _Keys:
    """Those of one new file, as a run of its rows; ``at`` is where each row is in that, or NONE.

    It is sorted beside the batches, so that little is left to do once the job stands.
    """

    written: int = 0
    parts: list[Run] = field(default_factory=list)
    at: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, rows: pa.RecordBatch, columns: KeyColumns) -> None:
        """The rows that come next."""
        keys, here, values = columns.of(pa.Table.from_batches([rows]))
        self.parts.append(Run(keys, (here + self.written).astype(np.uint64), values))
        self.written += rows.num_rows

    def sort(self) -> None:
        """No more will come."""
        run = merged(self.parts)
        self.parts, self.at = [run], np.full(self.written, NONE)
        self.at[run.places.astype(np.int64)] = np.arange(len(run))

    def live(self, dead: BitMap64) -> Run:
        """The run, in which rows that are ``dead`` are nowhere."""
        [run] = self.parts
        at = self.at[np.fromiter(dead, np.int64, len(dead))]
        run.places[at[at != NONE]] = NOWHERE
        return run
