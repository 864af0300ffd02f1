"""Orphans in quarantine: rows that were written ahead of a commit that never came.

A row is one if its sequence stands under another commit: Delta will not let its own come any
more. What cannot be proved so is left: the sequence may be one that is still to be committed,
or one that neither the log nor the offsets table knows any longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.spark.address import Address, literal

_AT_ONCE = 500
"""Commits that one DELETE names."""

Tag = tuple[int, str]
"""Sequence and commit of a quarantine row."""


def orphaned(tags: Iterable[Tag], standing: Mapping[int, str]) -> set[str]:
    """The commits among ``tags`` whose sequence stands under another commit."""
    return {commit for sequence, commit in tags if standing.get(sequence, commit) != commit}


class QuarantineOrphans:
    """The orphans of one pipeline in its quarantine; only rows from before ``until``."""

    def __init__(
        self, session: SparkSession, quarantine: Address, pipeline: str, until: datetime
    ) -> None:
        self._session = session
        self._quarantine = quarantine
        self._pipeline = pipeline
        self._until = until

    def find(self, entries: Mapping[int, str], offsets: Address | None) -> list[str]:
        """The commits whose rows are orphans, sorted.

        ``entries`` are the newest commits in the target's log by sequence; ``offsets`` is asked
        for those before them.
        """
        tags = _tags(self._old())
        standing = dict(entries)
        forgotten = {sequence for sequence, _ in tags} - entries.keys()
        if forgotten and offsets is not None:
            kept = offsets.read(self._session).where(F.col("pipeline") == self._pipeline)
            # One join, whatever their number: a list of them would be planned number by number.
            asked = self._session.createDataFrame([(each,) for each in forgotten], "sequence LONG")
            standing |= dict(_tags(kept.join(asked, "sequence", "left_semi")))
        return sorted(orphaned(tags, standing))

    def count(self, commits: Iterable[str]) -> int:
        """How many rows they have."""
        return self._old().where(F.col("commit").isin(*commits)).count()

    def remove(self, commits: list[str]) -> None:
        """Delete their rows."""
        for first in range(0, len(commits), _AT_ONCE):
            listed = ", ".join(map(literal, commits[first : first + _AT_ONCE]))
            where = f"pipeline = {literal(self._pipeline)} AND commit IN ({listed})"
            self._session.sql(f"DELETE FROM {self._quarantine.sql} WHERE {where}").collect()

    def _old(self) -> DataFrame:
        rows = self._quarantine.read(self._session).where(F.col("pipeline") == self._pipeline)
        return rows.where(F.col("quarantined_at") < F.lit(self._until))


def _tags(rows: DataFrame) -> list[Tag]:
    found = rows.select("sequence", "commit").distinct().collect()
    return [(row["sequence"], row["commit"]) for row in found]
