"""How changes by key land as files: what tasks do, and what the driver makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
from pyroaring import BitMap64

from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.vectors import Vector, vector_file
from rivermouth.write.files.data_files import DataFile, Files
from rivermouth.write.files.writing import Written
from rivermouth.write.keys.entries import Reduction
from rivermouth.write.keys.index import Found, KeyColumns, KeyIndex, Rows
from rivermouth.write.keys.runs import Words
from rivermouth.write.keys.settle import Integers, numbers_of


@dataclass(frozen=True)
class Live:
    """The rows of one new file that stay: the digests of their keys, where they are in it, and what
    the index holds of them.
    """

    keys: Words
    rows: Rows
    values: Words


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
        added = {name: (e.keys, e.rows, e.values) for name, e in self.live.items()}
        index.committed(added, self.deleted)


def change_of(effect: Effect, index: KeyIndex) -> Change:
    """The change that an effect makes; its deletion vectors are in the store.

    A file of which no row is left is no longer in the table, or never will be. Raises what the
    store does.
    """
    files = {each.name: each.added for each in effect.files}
    standing = _standing(effect, index)
    marks = [(files[name], BitMap64(rows)) for name, rows in effect.dead.items()]
    marks += [(each, index.deleted(each.path) | rows) for each, rows in standing.items()]
    left = [(file, rows) for file, rows in marks if len(rows) != file.rows]
    marked, deleted = _marked(left, index)
    added = [*(each for name, each in files.items() if name not in effect.dead), *marked]
    made = {*effect.made, *(str(each.file) for each in deleted)}
    return Change(_commit(effect, added, [*standing]), deleted, effect.live, made)


def _standing(effect: Effect, index: KeyIndex) -> dict[AddFile, BitMap64]:
    """The rows that go of files of the table."""
    number, row = effect.found.file[effect.gone], effect.found.row[effect.gone]
    return {index.file(each): BitMap64(row[number == each]) for each in numbers_of(number)}


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
    records of its key are bad; or files of the table lie elsewhere, as those of a shallow clone.
    """


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
