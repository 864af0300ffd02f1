"""Upkeep of one Delta table: OPTIMIZE, VACUUM, and rows of quarantine that nothing counts.

OPTIMIZE and VACUUM leave rows and log as they are. Their commits change no data and carry neither
``txn`` nor entry, so a ledger goes on over them. How long VACUUM leaves old files is a property of
the table: what a statement says of it, Delta 4.4 passes over.

A quarantine row is an orphan if its sequence was committed under another commit id: Delta will not
let its own come any more. What cannot be proved so is left: the sequence may be one that is still
to be committed, or one that neither the log nor the offsets table knows any longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.protocol.ways import interval_s
from rivermouth.spark.tables import Address, literal
from rivermouth.storage.store import Store

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

    def retention(self) -> str | None:
        """The table's own setting of how long old files stay; None where it has none."""

    def carry_out(self, *, dry_run: bool) -> Files:
        """Remove files that no version of so long ago names; compact small ones.

        A ``dry_run`` tells what would be removed; what would be compacted nobody knows before.
        """


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

    def retention(self) -> str | None:
        [detail] = self.session.sql(f"DESCRIBE DETAIL {self.address.sql}").collect()
        properties: Mapping[str, str] = detail["properties"] or {}
        return properties.get(RETENTION)

    def carry_out(self, *, dry_run: bool) -> Files:
        """How many files VACUUM removed the history tells; a dry run lists a thousand at most.

        VACUUM comes first: OPTIMIZE may lose to a commit of a run, and what it replaces stays
        until it is old anyway.
        """
        if dry_run:
            return Files(removed=self._vacuum("DRY RUN"))
        self._vacuum("")
        history = self.session.sql(f"DESCRIBE HISTORY {self.address.sql} LIMIT 20").collect()
        ends = (row["operationMetrics"] for row in history if row["operation"] == "VACUUM END")
        metrics: Mapping[str, str] = next(ends, {}) or {}
        [optimized] = self.session.sql(f"OPTIMIZE {self.address.sql}").collect()
        compacted = int(optimized["metrics"]["numFilesRemoved"])
        return Files(compacted, int(metrics.get("numDeletedFiles", 0)))

    def _vacuum(self, how: str) -> int:
        return len(self.session.sql(f"VACUUM {self.address.sql} {how}").collect())


@dataclass(frozen=True)
class ByDeltalake:
    """Upkeep of a table of a lake that other processes write with deltalake meanwhile.

    On a local file system Spark's commits and theirs would not exclude each other; among
    themselves theirs do. Raises DeltaError.
    """

    store: Store

    def retention(self) -> str | None:
        return self.store.delta_rs().metadata().configuration.get(RETENTION)

    def carry_out(self, *, dry_run: bool) -> Files:
        table = self.store.delta_rs()
        removed = len(table.vacuum(dry_run=dry_run))
        compacted = 0 if dry_run else int(table.optimize.compact()["numFilesRemoved"])
        return Files(compacted, removed)


_AT_ONCE = 500
"""Commits that one DELETE names."""

Tag = tuple[int, str]
"""Sequence and commit of a quarantine row."""


def orphaned(tags: Iterable[Tag], committed: Mapping[int, str]) -> set[str]:
    """The commits among ``tags`` whose sequence was committed under another id."""
    return {commit for sequence, commit in tags if committed.get(sequence, commit) != commit}


def remove_orphans(
    session: SparkSession,
    quarantine: Address,
    pipeline: str,
    until: datetime,
    *,
    entries: Mapping[int, str],
    offsets: Address | None,
    dry_run: bool,
) -> int:
    """Delete the orphans of one pipeline from before ``until``; how many rows they are.

    ``entries`` are the newest commits in the target's log by sequence; ``offsets`` is asked for
    those before them. A ``dry_run`` only counts.
    """
    own = F.col("pipeline") == pipeline
    rows = quarantine.read(session).where(own & (F.col("quarantined_at") < F.lit(until)))
    tags, committed = _tags(rows), dict(entries)
    forgotten = {sequence for sequence, _ in tags} - entries.keys()
    if forgotten and offsets is not None:
        # One join, whatever their number: a list of them would be planned number by number.
        asked = session.createDataFrame([(each,) for each in forgotten], "sequence LONG")
        recorded = offsets.read(session).where(own).join(asked, "sequence", "left_semi")
        committed |= dict(_tags(recorded))
    commits = sorted(orphaned(tags, committed))
    number = rows.where(F.col("commit").isin(*commits)).count() if commits else 0
    for first in range(0, 0 if dry_run else len(commits), _AT_ONCE):
        listed = ", ".join(map(literal, commits[first : first + _AT_ONCE]))
        where = f"pipeline = {literal(pipeline)} AND commit IN ({listed})"
        session.sql(f"DELETE FROM {quarantine.sql} WHERE {where}").collect()
    return number


def _tags(rows: DataFrame) -> list[Tag]:
    found = rows.select("sequence", "commit").distinct().collect()
    return [(row["sequence"], row["commit"]) for row in found]
