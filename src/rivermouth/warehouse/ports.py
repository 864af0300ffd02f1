"""The books of a pipeline: the edges that hold its ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from rivermouth.errors import LedgerTrimmed, RivermouthError
from rivermouth.protocol.entry import CommitRecord, Entry
from rivermouth.protocol.history import Chain, Recorded
from rivermouth.warehouse.recovered import Kept


class Log(Protocol):
    """The log of one table. What cannot be read raises a RivermouthError, mostly LedgerBroken."""

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

    def txn(self, app: str, chain: Chain) -> int:
        """The snapshot's ``txn`` of ``app``; ``chain`` has walked the log.

        Where the log does not tell, the newest readable entry does; and once clean-up has taken
        all of them, the offsets table: Delta compares again at the next commit, which has to
        come before any row. A log that still begins with version 0, or in which the version of
        the kept entry can be read, is another table's: clean-up took nothing of ours there.
        """
        told = self.log.txn_version(app)
        if told is not None:
            return told
        if chain.newest is not None or chain.first == 0:
            return chain.sequence
        kept = self.offsets.newest(chain.pipeline)
        return kept.sequence if kept is not None and kept.version < chain.first else 0

    def kept(self, pipeline: str, where: str, txn: int) -> Kept:
        """The newest entry as the offsets table knows it, once clean-up has taken it.

        Raises LedgerTrimmed where that is not the entry of the snapshot's ``txn``.
        """
        kept = self.offsets.newest(pipeline)
        if kept is None or kept.sequence != txn:
            raise trimmed(where, f"entry {txn}", kept.sequence if kept else 0)
        return kept


def trimmed(where: str, wanted: str, kept: int) -> LedgerTrimmed:
    """That clean-up took every entry, and the offsets table's newest, ``kept``, is not the last."""
    return LedgerTrimmed(
        "log clean-up took every entry of this pipeline",
        where=where,
        expected=f"{wanted} in the log, or in the offsets table",
        found=f"entry {kept} there" if kept else "none",
    )
