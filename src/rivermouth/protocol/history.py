"""The history of one pipeline's ledger, as far as a table's log has been replayed. Pure.

A ``History`` is a value. ``replay.replay`` makes the next one from it and the commits that follow;
at a start that is the audit of invariants 1, 2 and 5, and again after each commit of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.effective import NOTHING, Effective, Marks, known_before, newest_marks
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position
from rivermouth.protocol.rollback import accepting, way_on


@dataclass(frozen=True)
class History:
    """What the log says of a pipeline's ledger up to ``version``.

    ``where`` names pipeline and table in messages. ``first`` and ``version`` are the first and the
    newest version replayed; None: none yet. ``recorded`` is the newest entry in the log, and
    ``recovered`` the one that only the offsets table had, if the replay began with one.
    ``sequence`` is the highest sequence seen, 0 where there is no entry. ``effective`` is the entry
    in effect; None: nobody can tell. ``rolled_back_by`` are the first and the newest of the
    operations that rolled entries back and are not accepted yet; ``torn_at`` is the version at
    which an entry was written over such an operation. ``unexplained`` are rollbacks before the
    first readable entry.
    ``broken`` says what is wrong with the entries, in order: the first faults.
    """

    pipeline: str
    where: str
    first: int | None = None
    version: int | None = None
    recorded: Recorded | None = None
    recovered: Entry | None = None
    sequence: int = 0
    effective: Effective | None = NOTHING
    marks: Marks | None = field(default=None, repr=False)
    rolled_back_by: tuple[CommitRecord, ...] = ()
    torn_at: int | None = None
    unexplained: tuple[CommitRecord, ...] = ()
    broken: tuple[Halt, ...] = ()

    @staticmethod
    def recovered_from(pipeline: str, where: str, entry: Entry) -> History:
        """A history that begins with an entry that only the offsets table knows."""
        known = Effective(entry.sequence)
        return History(pipeline, where, recovered=entry, sequence=entry.sequence, effective=known)

    def shortened(self) -> History:
        """The same history for a run to go on with: of what was in effect, the newest part."""
        if self.marks is None:
            return self
        effective = Effective(self.effective.sequence) if self.effective is not None else None
        return replace(self, effective=effective, marks=newest_marks(self.marks))

    @property
    def newest(self) -> Entry | None:
        """The newest entry: in the log, or recovered."""
        return self.recorded.entry if self.recorded is not None else self.recovered

    @property
    def position(self) -> Position:
        """The position after the newest entry."""
        return self.newest.position if self.newest is not None else Position()

    @property
    def whole(self) -> bool:
        """Whether the log begins with version 0: clean-up took nothing."""
        return self.first == 0

    def effective_sequences(self) -> set[int]:
        """The entries that the table rests on, and the last of those cleaned up before them."""
        return {each.sequence for each in self.effective.chain()} if self.effective else set()

    @property
    def rolled_back_since(self) -> int | None:
        """The version from which on entries are rolled back; None: all of them are in effect."""
        return self.rolled_back_by[0].version if self.rolled_back_by else None

    @property
    def faults(self) -> tuple[Halt, ...]:
        """Everything found wrong, rollbacks last. Nothing may be written while there is any."""
        if not self.rolled_back_by:
            return self.broken
        return (*self.broken, self._torn() if self.torn_at is not None else self._rolled_back())

    def _torn(self) -> LedgerBroken:
        torn_at = self.torn_at or 0
        known = known_before(self.marks, torn_at)
        back = f"RESTORE TABLE ... TO VERSION AS OF {known}, then run again to see the way on"
        reset = f"TRUNCATE, then: {accepting(self.pipeline, 'reset')}"
        return LedgerBroken(
            f"version {torn_at} was written over commits that were rolled back",
            where=self.where,
            expected="no RESTORE, REPLACE or TRUNCATE during a batch",
            found=f"one at version {self.rolled_back_since}",
            remedy=reset if known is None else back,
        )

    def _rolled_back(self) -> TableUndone:
        first = self.rolled_back_by[0]
        return TableUndone(
            f"{first.operation} at version {first.version} undid commits of this pipeline",
            where=self.where,
            expected=f"entry {self.sequence} to be in effect",
            found=_shown(self.effective),
            remedy=way_on(self.pipeline, self.rolled_back_by, self.effective is not None),
        )


def _shown(effective: Effective | None) -> str:
    if effective is None:
        return "nobody knows which: a point in time, or before log clean-up"
    return f"entry {effective.sequence}" if effective.sequence else "none"
