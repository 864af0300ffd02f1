"""Upkeep of one Delta table: small files into large ones, and files that nothing names any more.

Both leave rows and log as they are. Their commits change no data and carry neither ``txn`` nor
entry, so a ledger goes on over them. How long VACUUM leaves old files is a property of the
table: what a statement says of it, Delta 4.4 passes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.spark.address import Address
from rivermouth.warehouse.folder.log import interval_s

RETENTION = "delta.deletedFileRetentionDuration"
"""The property. Seven days where it is not set."""
WEEK_HOURS = 168


@dataclass(frozen=True)
class Files:
    """How many data files went: ``compacted`` into larger ones, ``removed`` from the disk."""

    compacted: int = 0
    removed: int = 0


class Upkeep(Protocol):
    """The upkeep of one table."""

    def exists(self) -> bool:
        """Whether there is a table."""

    def retention(self) -> str | None:
        """The table's own setting of how long old files stay; None where it has none."""

    def carry_out(self) -> Files:
        """Remove files that no version of so long ago names; compact small ones."""

    def foresee(self) -> Files:
        """What would be removed; what would be compacted nobody knows before."""


def hours(retention: str | None) -> float:
    """``interval 7 days`` in hours; 0 for what is not understood, so that no one relies on it."""
    if retention is None:
        return WEEK_HOURS
    return (interval_s(retention) or 0) / 3600


@dataclass(frozen=True)
class BySpark:
    """Upkeep through Spark, of a table at any address. Raises what Spark raises."""

    session: SparkSession
    address: Address

    def exists(self) -> bool:
        """See ``Upkeep.exists``."""
        if self.address.path:
            return DeltaTable.is_deltatable(self.address.path)
        return self.session.catalog.tableExists(self.address.sql)

    def retention(self) -> str | None:
        """See ``Upkeep.retention``."""
        [detail] = self.session.sql(f"DESCRIBE DETAIL {self.address.sql}").collect()
        properties: Mapping[str, str] = detail["properties"] or {}
        return properties.get(RETENTION)

    def carry_out(self) -> Files:
        """See ``Upkeep.carry_out``. How many files VACUUM removed the history tells.

        VACUUM comes first: OPTIMIZE may lose to a commit of a run, and what it replaces stays
        until it is old anyway.
        """
        self._vacuum("")
        history = self.session.sql(f"DESCRIBE HISTORY {self.address.sql} LIMIT 20").collect()
        ends = (row["operationMetrics"] for row in history if row["operation"] == "VACUUM END")
        metrics: Mapping[str, str] = next(ends, {}) or {}
        [optimized] = self.session.sql(f"OPTIMIZE {self.address.sql}").collect()
        compacted = int(optimized["metrics"]["numFilesRemoved"])
        return Files(compacted, int(metrics.get("numDeletedFiles", 0)))

    def foresee(self) -> Files:
        """See ``Upkeep.foresee``. Spark lists a thousand files and no more."""
        return Files(removed=self._vacuum("DRY RUN"))

    def _vacuum(self, how: str) -> int:
        return len(self.session.sql(f"VACUUM {self.address.sql} {how}").collect())


@dataclass(frozen=True)
class ByDeltalake:
    """Upkeep of a table at a path that other processes write with deltalake meanwhile.

    On a local file system Spark's commits and theirs would not exclude each other; among
    themselves theirs do. Raises DeltaError.
    """

    path: str

    def exists(self) -> bool:
        """See ``Upkeep.exists``."""
        return DeltaTable.is_deltatable(self.path)

    def retention(self) -> str | None:
        """See ``Upkeep.retention``."""
        return DeltaTable(self.path).metadata().configuration.get(RETENTION)

    def carry_out(self) -> Files:
        """See ``Upkeep.carry_out``."""
        table = DeltaTable(self.path)
        removed = len(table.vacuum(dry_run=False))
        return Files(int(table.optimize.compact()["numFilesRemoved"]), removed)

    def foresee(self) -> Files:
        """See ``Upkeep.foresee``."""
        return Files(removed=len(DeltaTable(self.path).vacuum(dry_run=True)))
