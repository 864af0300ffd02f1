"""What is known of a pipeline's ledger at one moment, as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rivermouth.errors import LedgerTrimmed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.history import History


@dataclass(frozen=True)
class LedgerSnapshot:
    """The facts about one pipeline's ledger: from the log of its table and the offsets table.

    ``entries`` are those that were read, in order. ``table`` is the table's id, empty where there
    is no table. ``txn`` is the pipeline's ``txn`` in the table's snapshot, ``projected`` the newest
    sequence in the offsets table; 0 where there is none. ``last_projected`` is what the offsets
    table knows of the newest entry; it is asked only where the log holds none.
    ``rollback_noted`` is the version from which on a start once found entries rolled back; 0:
    never. ``retention_s`` is how long log clean-up leaves commits. ``others`` are the ledgers of
    other pipelines in the table; they are read only where this one has a topic without an entry.
    """

    history: History
    entries: tuple[Recorded, ...] = ()
    table: str = ""
    txn: int = 0
    projected: int = 0
    last_projected: Recorded | None = None
    rollback_noted: int = 0
    retention_s: float = 0.0
    others: tuple[History, ...] = ()

    @property
    def newest(self) -> Entry | None:
        """The newest entry."""
        return self.history.newest

    @property
    def known_entries(self) -> list[Entry]:
        """All entries that are known, in order, the one that was recovered before the others."""
        recovered = self.history.recovered
        return [*([recovered] if recovered else []), *(each.entry for each in self.entries)]

    @property
    def forgotten(self) -> bool:
        """Whether a start found entries rolled back, and clean-up took what rolled them back."""
        first, recovered = self.history.first, self.history.recovered
        if recovered is not None and self.last_projected is not None:
            settled: int | None = self.last_projected.version
        else:
            settled = self.entries[0].entry.base if self.entries else None
        answered = any(each.entry.accepts for each in self.entries)
        noted = self.rollback_noted
        return settled is not None and settled < noted < (first or 0) and not answered

    @property
    def was_rolled_back(self) -> bool:
        """Whether the newest entry was rolled back for a while: what was noted still applies."""
        return self.rollback_noted > (self.entries[-1].version if self.entries else 0)

    @property
    def ahead(self) -> bool:
        """Whether the offsets table knows more than the log."""
        return self.projected > self.history.sequence

    def age_s(self, now_s: float) -> float:
        """How long ago, in seconds, the newest entry in the log was committed; 0: there is none."""
        return now_s - self.entries[-1].timestamp_ms / 1000 if self.entries else 0.0

    def is_old(self, now_s: float) -> bool:
        """Whether the newest entry is to be written again: log clean-up must not take it."""
        return self.age_s(now_s) > self.retention_s / 3

    def check_not_trimmed(self) -> None:
        """Raise LedgerTrimmed where clean-up took all entries, and the offsets table lacks them."""
        if self.txn and self.newest is None and not self.history.faults:
            kept = self.last_projected.entry.sequence if self.last_projected is not None else 0
            raise trimmed(self.history.where, f"entry {self.txn}", kept)


def trimmed(where: str, wanted: str, kept: int) -> LedgerTrimmed:
    """That clean-up took every entry, and the offsets table's newest, ``kept``, is not the last."""
    return LedgerTrimmed(
        "log clean-up took every entry of this pipeline",
        where=where,
        expected=f"{wanted} in the log, or in the offsets table",
        found=f"entry {kept} there" if kept else "none",
    )


def snapshot_txn(of_log: int | None, history: History, projected: Recorded | None) -> int:
    """The pipeline's ``txn`` in the table's snapshot. ``of_log`` is what the log says of it.

    Where that is None, the newest readable entry tells; once clean-up has taken all of them, the
    offsets table does: Delta compares again at the next commit, which comes before any row.
    A log that still begins with version 0, or in which the version of that entry can be read,
    is another table's: clean-up took nothing of ours there.
    """
    if of_log is not None:
        return of_log
    if history.newest is not None or history.whole or history.first is None:
        return history.sequence
    return (
        projected.entry.sequence
        if projected is not None and projected.version < history.first
        else 0
    )
