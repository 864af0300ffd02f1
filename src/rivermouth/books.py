"""The books of a pipeline: the edges that hold its ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from rivermouth.delta import DeltaLog
from rivermouth.errors import LedgerTrimmed, RivermouthError
from rivermouth.ledger import Entry
from rivermouth.tables.kept import Kept
from rivermouth.tables.offsets import OffsetsTable


@dataclass(frozen=True)
class Books:
    """The edges that hold the ledger: the table's log and the offsets table."""

    log: DeltaLog
    offsets: OffsetsTable
    record: Callable[[SparkSession, Entry], None]
    """Commits an entry that comes with no rows."""
    translate: Callable[[Exception], RivermouthError]
    pause: Callable[[float], None] = time.sleep

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
