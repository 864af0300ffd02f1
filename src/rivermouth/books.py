"""The books of a pipeline: the edges that hold its ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from rivermouth.chain import Recorded
from rivermouth.errors import LedgerTrimmed, RivermouthError
from rivermouth.ledger import CommitRecord, Entry
from rivermouth.tables.kept import Kept


class Log(Protocol):
    """The log of one table. What cannot be read raises LedgerBroken."""

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order. Versions may start above 0 after clean-up."""

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, in order."""

    def table_id(self) -> str:
        """The id that a table has as long as it is not replaced."""

    def txn_version(self, app: str) -> int | None:
        """The version of the newest ``txn`` of ``app``; 0: there is none, None: nobody can tell."""

    def retention_s(self) -> float:
        """How long log clean-up leaves commits readable, in seconds."""


class Offsets(Protocol):
    """The offsets table, see ``tables.offsets``. Every method raises CommitFailed."""

    def sequence(self, pipeline: str) -> int:
        """The newest sequence projected for the pipeline; 0 where there is none."""

    def newest(self, pipeline: str) -> Kept | None:
        """What the table knows of the pipeline's newest entry; None where it knows none."""

    def halted_at(self, pipeline: str) -> int:
        """The version of the target from which on a start found commits undone; 0: never."""

    def note_halt(self, pipeline: str, version: int) -> None:
        """Note that, for longer than the log tells of it."""

    def project(self, recorded: Sequence[Recorded], table_name: str) -> None:
        """Write the rows of entries, each with its ``rows``, that are not there yet."""


@dataclass(frozen=True)
class Books:
    """The edges that hold the ledger: the table's log and the offsets table."""

    log: Log
    offsets: Offsets
    with_rows: Callable[[Sequence[Recorded]], list[Recorded]]
    """The same entries, each with its ``rows``: counted in the table where it had none."""
    record: Callable[[SparkSession, Entry], None]
    """Commits an entry that comes with no rows."""
    translate: Callable[[Exception], RivermouthError]
    pause: Callable[[float], None] = time.sleep

    def txn(self, app: str, newest: int, pipeline: str) -> int:
        """The snapshot's ``txn`` of ``app``; ``newest`` is the newest readable entry's sequence.

        Where the log does not tell, the offsets table does while no entry can be read: Delta
        compares again at the next commit, which has to come before any row.
        """
        told = self.log.txn_version(app)
        if told is not None:
            return told
        return newest or self.offsets.sequence(pipeline)

    def kept(self, pipeline: str, where: str, txn: int) -> Kept:
        """The newest entry as the offsets table knows it, once clean-up has taken it.

        Raises LedgerTrimmed where that is not the entry of the snapshot's ``txn``.
        """
        kept = self.offsets.newest(pipeline)
        if kept is None or kept.sequence != txn:
            raise LedgerTrimmed(
                "log clean-up took every entry of this pipeline",
                where=where,
                expected=f"entry {txn} in the log, or in the offsets table",
                found=f"entry {kept.sequence} there" if kept else "none",
            )
        return kept
