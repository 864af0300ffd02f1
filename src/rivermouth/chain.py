"""Walking a table's log: from commits to the state a pipeline stands in, and its faults.

This is the audit of invariants 1, 2 and 5 over the whole readable chain, at every start
and again after each commit of ours. Pure: commits in, state out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.ledger import CommitRecord, Entry, app_id, entry_of
from rivermouth.offsets import Position


@dataclass(frozen=True)
class Recorded:
    """An entry where it stands in the log."""

    version: int
    timestamp_ms: int
    entry: Entry


class Chain:
    """Walks the commits of one table in order and keeps one pipeline's ledger state.

    Feed it every readable commit once (``extend``), at start and after each write. It
    checks that entries follow on each other without gap or overlap, and it follows
    RESTORE, REPLACE and TRUNCATE, which undo commits but leave their ``txn`` behind.
    ``faults`` lists what is broken, in order; a caller must not write while it is not empty.
    """

    def __init__(self, pipeline: str, where: str) -> None:
        self.pipeline = pipeline
        self.where = where
        self.version = -1
        self.newest: Entry | None = None
        self._standing = 0
        self._marks: list[tuple[int, int]] = []
        self._commits: set[str] = set()
        self._whole = False
        self._undone_by: CommitRecord | None = None
        self._faults: list[Halt] = []

    @property
    def sequence(self) -> int:
        """The highest sequence seen; 0 where there is no entry."""
        return self.newest.sequence if self.newest else 0

    @property
    def standing(self) -> int:
        """The sequence up to which entries stand in the table as it is; -1: nobody can tell.

        Less than ``sequence`` once a RESTORE, REPLACE or TRUNCATE has undone commits.
        """
        return self._standing

    @property
    def position(self) -> Position:
        """The position after the newest entry."""
        return self.newest.position if self.newest else Position()

    @property
    def faults(self) -> tuple[Halt, ...]:
        """Everything found broken so far, the undoing of commits last."""
        if self._undone_by is None or self._standing == self.sequence:
            return tuple(self._faults)
        return (*self._faults, self._undone(self._undone_by))

    def extend(self, records: Iterable[CommitRecord]) -> list[Recorded]:
        """Walk on over ``records`` (ascending versions); return the entries among them."""
        found: list[Recorded] = []
        for record in records:
            if self.version < 0:
                self._whole = record.version == 0
            elif record.version != self.version + 1:
                self._fault("a commit is missing in the log", self.version + 1, record.version)
            self.version = record.version
            entry = self._entry(record)
            if entry is not None:
                self._append(record, entry)
                found.append(Recorded(record.version, record.timestamp_ms, entry))
            else:
                self._follow(record)
        return found

    def _entry(self, record: CommitRecord) -> Entry | None:
        try:
            entry = entry_of(record, self.pipeline)
        except LedgerBroken as fault:
            self._faults.append(fault)
            return None
        if entry is None and app_id(self.pipeline) in record.txns:
            self._fault("a commit uses our appId without an entry", "an entry", record.version)
        return entry

    def _append(self, record: CommitRecord, entry: Entry) -> None:
        where = f"entry {entry.sequence} at version {record.version}"
        if record.txns.get(app_id(self.pipeline)) != entry.sequence:
            self._fault(f"{where}: txn and sequence differ", entry.sequence, record.txns)
        if entry.commit in self._commits:
            self._fault(f"{where}: a commit id twice", "a new id", entry.commit)
        if (self.newest is not None or self._whole) and entry.sequence != self.sequence + 1:
            self._fault(f"{where}: sequence broken", self.sequence + 1, entry.sequence)
        if self.newest is not None or self._whole:
            self._check_ranges(where, entry)
        if self._standing != self.sequence and self.newest is not None:
            self._fault(f"{where}: written over undone commits", self._standing, entry.sequence)
        self.newest = entry
        self._standing = entry.sequence
        self._commits.add(entry.commit)
        self._marks.append((record.version, entry.sequence))

    def _check_ranges(self, where: str, entry: Entry) -> None:
        try:
            after = self.position.advance(entry.ranges)
        except ValueError as fault:
            self._fault(f"{where}: ranges do not follow on", "no gap, no overlap", fault)
            return
        if after != entry.position:
            self._fault(f"{where}: position is not where the ranges lead", after, entry.position)

    def _follow(self, record: CommitRecord) -> None:
        """Follow an operation of others that may have undone entries."""
        if self.newest is None or not (record.operation == "RESTORE" or _empties(record)):
            return
        if self._standing == self.sequence:
            self._undone_by = record
        restored = record.operation == "RESTORE"
        self._standing = self._standing_at(record.parameters.get("version")) if restored else 0
        self._marks.append((record.version, self._standing))

    def _standing_at(self, version: Any) -> int:
        """The entry that a RESTORE to ``version`` leaves standing; -1 where that is unknown.

        A RESTORE to a point in time does not record the version. It cannot be found again:
        Delta goes by the times of files, in the time zone of a session.
        """
        if not str(version).isdigit():
            return -1
        index = bisect_right(self._marks, (int(version), 1 << 62)) - 1
        return self._marks[index][1] if index >= 0 else 0

    def _undone(self, record: CommitRecord) -> TableUndone:
        standing = {-1: "a RESTORE to a point in time", 0: "none"}.get(
            self._standing, f"entry {self._standing}"
        )
        return TableUndone(
            f"{record.operation} at version {record.version} undid commits of this pipeline",
            where=self.where,
            expected=f"entry {self.sequence} to stand",
            found=standing,
            remedy=f"To undo it: RESTORE TABLE ... TO VERSION AS OF {record.version - 1}",
        )

    def _fault(self, what: str, expected: object, found: object) -> None:
        self._faults.append(
            LedgerBroken(what, where=self.where, expected=str(expected), found=str(found))
        )


def _empties(record: CommitRecord) -> bool:
    """Whether an operation takes away all rows without touching our ``txn``.

    Spark and deltalake spell it differently. What names some rows is left to ``verify``.
    """
    operation, parameters = record.operation.upper(), record.parameters
    everything = str(parameters.get("predicate") or "").lower() in _EVERYTHING
    if operation == "DELETE":
        return everything
    if operation == "WRITE" and parameters.get("mode") == "Overwrite":
        dynamic = str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
        return everything and not dynamic
    return operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in operation


_EVERYTHING = {"", "[]", "true", '["true"]'}
