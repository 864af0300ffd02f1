"""Walking a table's log: from commits to the state a pipeline stands in, and its faults.

This is the audit of invariants 1, 2 and 5 over the whole readable chain, at every start
and again after each commit of ours. Pure: commits in, state out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.protocol.effective import UNKNOWN, Standings
from rivermouth.protocol.entry import Accepted, CommitRecord, Entry, app_id, entry_of
from rivermouth.protocol.offsets import Position
from rivermouth.protocol.rollback import accepting, undoes, way_on


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
    ``first`` and ``version`` are the first and the newest version walked. ``faults`` lists
    what is broken, in order; a caller must not write while it is not empty.
    """

    def __init__(self, pipeline: str, where: str) -> None:
        self.pipeline = pipeline
        self.where = where
        self.version = -1
        self.newest: Entry | None = None
        self.adopted: Entry | None = None
        self._sequence = 0
        self._standing = 0
        self._early: list[CommitRecord] = []
        self._standings = Standings()
        self._before: dict[int, int] = {}
        self._commits: set[str] = set()
        self._whole = False
        self.first = 0
        self._undone_by: list[CommitRecord] = []
        self._torn_at = 0
        self._faults: list[Halt] = []

    @property
    def sequence(self) -> int:
        """The highest sequence seen; 0 where there is no entry."""
        return self._sequence

    @property
    def standing(self) -> int:
        """The sequence up to which entries stand in the table; ``UNKNOWN``: nobody can tell.

        Less than ``sequence`` once a RESTORE, REPLACE or TRUNCATE has undone commits.
        """
        return self._standing

    def standing_sequences(self) -> set[int]:
        """The entries that the table rests on, and the last of those cleaned up before them."""
        stands, each = set[int](), self._standing
        while each > 0:
            stands.add(each)
            each = self._before.get(each, 0)
        return stands

    @property
    def position(self) -> Position:
        """The position after the newest entry."""
        return self.newest.position if self.newest else Position()

    @property
    def faults(self) -> tuple[Halt, ...]:
        """Everything found broken so far, the undoing of commits last."""
        if self.undone_by is None:
            return tuple(self._faults)
        return (*self._faults, self._torn() if self._torn_at else self._undone())

    @property
    def undone_since(self) -> int:
        """The version from which on commits are undone; -1 where all of them stand."""
        return self._undone_by[0].version if self._undone_by else -1

    @property
    def undone_by(self) -> CommitRecord | None:
        """The newest operation that undid commits of ours; None where all of them stand."""
        return self._undone_by[-1] if self._undone_by else None

    def adopt(self, entry: Entry) -> None:
        """Begin, before the first ``extend``, with an entry that only the offsets table knows."""
        self.adopted = self.newest = entry
        self._sequence = self._standing = entry.sequence

    def extend(self, records: Iterable[CommitRecord]) -> list[Recorded]:
        """Walk on over ``records`` (ascending versions); return the entries among them."""
        found: list[Recorded] = []
        for record in records:
            if self.version < 0:
                self._whole, self.first = record.version == 0, record.version
                if self.adopted is not None:  # of versions before this one nobody can tell
                    self._standings.note(self.first, self._standing)
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
        if self.newest is None:
            self._begin(entry)
        if entry.accepts is not None:
            self._check_accepted(where, entry, entry.accepts)
        elif self.newest is not None or self._whole:
            self._check_follows(where, entry)
        anew = entry.accepts is not None and entry.accepts.kind == "reset"
        self._before[entry.sequence] = 0 if anew else self._standing
        self.newest, self._sequence = entry, entry.sequence
        if entry.accepts is not None:
            self._undone_by = []
        elif self._undone_by:  # the table holds neither what was restored nor what we meant
            self._torn_at = self._torn_at or record.version
        self._standing = UNKNOWN if self._torn_at else entry.sequence
        self._commits.add(entry.commit)
        self._standings.note(record.version, self._standing)

    def _begin(self, first: Entry) -> None:
        """What stood before the first readable entry, if it tells, and what others did to that."""
        if first.accepts is None:
            self._sequence = self._standing = 0 if self._whole else first.sequence - 1
            settled = [each for each in self._early if each.version <= first.base]
            at_first = UNKNOWN if self._early and self._standing else self._standing
            self._standings.note(self.first, at_first)
            if settled:  # whoever wrote the entry knew of them, and that nothing was undone
                self._standings.note(settled[-1].version, self._standing)
            for record in self._early[len(settled) :] if self._standing else ():
                self._follow(record)

    def _check_accepted(self, where: str, entry: Entry, accepted: Accepted) -> None:
        """An operator accepted an undoing: it is the one found. Its position is for ``verify``.

        A table that was dropped and made anew knows neither entries nor undoing; then the
        sequence goes on from where the offsets table stands.
        """
        if self.newest is None:
            self._standing = accepted.standing
            return
        if entry.sequence <= self.sequence:
            self._fault(f"{where}: sequence broken", self.sequence + 1, entry.sequence)
        if self.undone_by is not None and self._standing == UNKNOWN:  # cleaned up since; it knew
            self._standing = accepted.standing
        found = (self.undone_by.version if self.undone_by else -1, self._standing)
        if (accepted.version, accepted.standing) != found:
            self._fault(f"{where}: accepts what did not happen", found, accepted)

    def _check_follows(self, where: str, entry: Entry) -> None:
        if entry.sequence != self.sequence + 1:
            self._fault(f"{where}: sequence broken", self.sequence + 1, entry.sequence)
        try:
            after = self.position.advance(entry.ranges)
        except ValueError as fault:
            self._fault(f"{where}: ranges do not follow on", "no gap, no overlap", fault)
            return
        if after != entry.position:
            self._fault(f"{where}: position is not where the ranges lead", after, entry.position)

    def _follow(self, record: CommitRecord) -> None:
        """Follow an operation of others that may have undone entries."""
        if not undoes(record):
            return
        if self.newest is None and not self._sequence:
            self._early.append(record)
            return
        restored = record.operation == "RESTORE"
        self._standing = self._standings.at(record.parameters.get("version")) if restored else 0
        self._standings.note(record.version, self._standing)
        if self._standing == self.sequence:
            self._undone_by = []
        else:
            self._undone_by.append(record)
        if self._standing >= 0:
            self._torn_at = 0

    def _torn(self) -> LedgerBroken:
        known = self._standings.known_before(self._torn_at)
        back = f"RESTORE TABLE ... TO VERSION AS OF {known}, then run again to see the way on"
        reset = f"TRUNCATE, then: {accepting(self.pipeline, 'reset')}"
        return LedgerBroken(
            f"version {self._torn_at} was written over undone commits",
            where=self.where,
            expected="no RESTORE, REPLACE or TRUNCATE during a batch",
            found=f"one at version {self._undone_by[0].version}",
            remedy=reset if known is None else back,
        )

    def _undone(self) -> TableUndone:
        record = self._undone_by[0]
        unknown = "nobody knows which: a point in time, or before log clean-up"
        standing = {UNKNOWN: unknown, 0: "none"}.get(self._standing, f"entry {self._standing}")
        return TableUndone(
            f"{record.operation} at version {record.version} undid commits of this pipeline",
            where=self.where,
            expected=f"entry {self.sequence} to stand",
            found=standing,
            remedy=way_on(self.pipeline, self._undone_by, self._standing),
        )

    def _fault(self, what: str, expected: object, found: object) -> None:
        self._faults.append(
            LedgerBroken(what, where=self.where, expected=str(expected), found=str(found))
        )
