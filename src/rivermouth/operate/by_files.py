"""Upkeep of a table in a folder by commits of ours, without Spark.

What is named: the files of the newest version with their vectors, and those that were removed a
short while ago, for who reads an older version or restores it. What is younger may be of a commit
that is still to come. Names that begin with ``_`` or ``.`` are no data, but for folders of
partitions.

A run compacts as it goes; what short runs have left is done here. Only for a table whose log asks
for nothing that we do not understand, see ``protocol.ways.why_not``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from rivermouth.errors import CommitConflict, LedgerBroken, LogUnreadable
from rivermouth.operate.optimize import RETENTION, Files, Tag, hours, orphaned
from rivermouth.protocol.ways import why_not
from rivermouth.storage.store import Store, Stored
from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.partitions import Partition
from rivermouth.warehouse.delta.rows import read_columns
from rivermouth.warehouse.delta.vectors import deleted_rows
from rivermouth.write.files import data_files
from rivermouth.write.files.bad_records import folder_of
from rivermouth.write.files.compaction import Nobody, commit_of, rewritten
from rivermouth.write.files.due import TARGET_BYTES, due
from rivermouth.write.files.table import FilesTable


def unnamed(store: Store, before_ms: int) -> list[Stored]:
    """The objects that may go, in the order of their paths.

    They were written before that time (ms since 1970), and no version since then names them. Raises
    ``STORE_FAULTS``, LogUnreadable and LedgerBroken.
    """
    log = DeltaLog(store, files=True, former=True)
    log.follow()
    partitions = tuple(f"{each}=" for each in log.state.definition.partitions)

    def takes(name: str) -> bool:
        return not name.startswith(("_", ".")) or name.startswith(partitions)

    found = [each for each in store.below(takes) if each.modified_ms < before_ms]
    log.follow()  # what was committed while the folders were read is named, too
    former = (file for file, at_ms in log.state.former or () if at_ms >= before_ms)
    names = _names([*log.state.current.values(), *former])
    return sorted((e for e in found if not names(e.path)), key=lambda each: each.path)


def _names(files: Iterable[AddFile]) -> Callable[[str], bool]:
    """Whether an object is named by one of these files. Absolute paths count by their names."""
    known = [*files]
    vectors = [each.vector for each in known if each.vector is not None]
    paths = {*(each.path for each in known), *(each.file or each.path for each in vectors)}
    anywhere = {each.rpartition("/")[2] for each in paths if each.startswith("/") or ":" in each}
    return lambda path: path in paths or path.rpartition("/")[2] in anywhere


_TOGETHER = 2
"""So many small files are joined: nobody waits for it."""
_TAGS = pa.schema([("pipeline", pa.string()), ("sequence", pa.int64()), ("commit", pa.string())])
_OLD = _TAGS.append(pa.field("quarantined_at", pa.timestamp("us", "UTC")))

Known = Callable[[Collection[int]], Mapping[int, str]]
"""The commits that stand, by their sequences, of these."""


def understood(store: Store, *, partitioned: bool = True) -> bool:
    """Whether there is a table in ``store`` that commits of ours may change; if it may be
    ``partitioned``.

    One whose log cannot be read is left to Spark, which says why.
    """
    with suppress(LogUnreadable, LedgerBroken):
        found = DeltaLog(store).definition()
        return found is not None and not why_not(found) and (partitioned or not found.partitions)
    return False


@dataclass(frozen=True)
class ByFiles:
    """Upkeep of the table in ``store``, which is ``understood``. ``now_ms``: since 1970.

    Raises what ``FilesTable`` does, and CommitConflict where others commit meanwhile.
    """

    store: Store
    now_ms: int

    def retention(self) -> str | None:
        """See ``Upkeep``."""
        return self._table().definition().setting(RETENTION)

    def carry_out(self, *, dry_run: bool) -> Files:
        """See ``Upkeep``."""
        table = self._table()
        kept_h = hours(self.retention())
        old = unnamed(table.log.store, self.now_ms - int(kept_h * 3_600_000))
        if dry_run:
            return Files(removed=len(old))
        if old:
            _remove(old, table, kept_h)
        return Files(_compact(table), len(old))

    def remove_orphans(self, pipeline: str, until: datetime, known: Known, *, dry_run: bool) -> int:
        """Delete the orphans of one pipeline from before ``until``; how many rows they are.

        The table is not partitioned. A ``dry_run`` only counts.
        """
        table = self._table()
        rows = {each: _old(table.log, each, pipeline, until) for each in _files(table)}
        tags = {tag for each in rows.values() for tag in _tags(each)}
        commits = pa.array(orphaned(tags, known({sequence for sequence, _ in tags})), pa.string())
        dead = {
            file: BitMap64(each.filter(pc.is_in(each["commit"], commits))["row"].to_pylist())
            for file, each in rows.items()
        }
        number = sum(map(len, dead.values()))
        if number and not dry_run:
            _delete(table, {file: each for file, each in dead.items() if each}, number)
        return number

    def _table(self) -> FilesTable:
        table = FilesTable(self.store, self.store.where, files=True)
        table.newest()
        return table


def committed(store: Store, pipeline: str, sequences: Collection[int]) -> dict[int, str]:
    """What the offsets table in ``store`` knows of these entries: commits by sequences."""
    log = DeltaLog(store, files=True)
    log.follow()
    found = dict[int, str]()
    for each in log.state.current.values():
        rows = read_columns(log.store, each.path, _TAGS.names).cast(_TAGS)
        own = rows.filter(pc.equal(rows["pipeline"], pipeline))
        found |= {sequence: commit for sequence, commit in _tags(own) if sequence in sequences}
    return found


def _files(table: FilesTable) -> list[AddFile]:
    return [*table.log.state.current.values()]


def _remove(old: Iterable[Stored], table: FilesTable, kept_h: float) -> None:
    """Remove objects, and say so in the log as Delta's VACUUM does."""
    known, kept_ms = [*old], str(int(kept_h * 3_600_000))
    metrics = {"numFilesToDelete": len(known), "sizeOfDataToDelete": sum(e.size for e in known)}
    asked = {"retentionCheckEnabled": "true", "defaultRetentionMillis": kept_ms}
    table.after_others(Commit("VACUUM START", parameters=asked, metrics=metrics))
    table.log.store.delete(each.path for each in known)
    done = {"numDeletedFiles": len(known), "numVacuumedDirectories": 0}
    table.after_others(Commit("VACUUM END", parameters={"status": "COMPLETED"}, metrics=done))


def _compact(table: FilesTable) -> int:
    """Carry out all jobs that are due; how many files they took."""
    number, log = 0, table.log
    target = table.definition().file_bytes or TARGET_BYTES
    while sources := due(_files(table), target, _TOGETHER):
        deleted = {each: deleted_rows(log.store, each.vector) for each in sources}
        into = _writer(table, sources[0].partition)
        job = rewritten(deleted, log, into, Nobody(), lambda: False)
        found = None if job is None else commit_of(job, log)
        if job is None or found is None:
            return number
        try:
            table.also(found.commit)
        except CommitConflict:
            job.discard(log.store)
            raise
        number += len(sources)
    return number


def _writer(table: FilesTable, within: Partition) -> data_files.Files:
    return data_files.Files(folder_of(table.store, table.definition()), 0, within)


def _old(log: DeltaLog, file: AddFile, pipeline: str, until: datetime) -> pa.Table:
    """Tags and places of the rows of a pipeline that were written before that time."""
    rows = read_columns(log.store, file.path, _OLD.names).cast(_OLD)
    rows = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    old = pc.less(rows["quarantined_at"], pa.scalar(until, _OLD.field("quarantined_at").type))
    there = np.ones(rows.num_rows, np.bool_)
    there[np.fromiter(deleted_rows(log.store, file.vector), np.int64)] = False
    own = pc.and_(pc.equal(rows["pipeline"], pipeline), old)
    return rows.filter(pc.and_(own, pa.array(there)))


def _tags(rows: pa.Table) -> set[Tag]:
    return {*zip(rows["sequence"].to_pylist(), rows["commit"].to_pylist(), strict=True)}


def _delete(table: FilesTable, dead: Mapping[AddFile, BitMap64], number: int) -> None:
    """Delete rows of files, which are written anew."""
    log = table.log
    left = {file: deleted_rows(log.store, file.vector) | rows for file, rows in dead.items()}
    job = rewritten(left, log, _writer(table, {}), Nobody(), lambda: False)
    if job is None:
        return
    metrics = {"numDeletedRows": number, "numRemovedFiles": len(dead)}
    try:
        table.also(Commit("DELETE", added=job.added, removed=[*dead], metrics=metrics))
    except CommitConflict:
        job.discard(log.store)
        raise
