"""Commits that bring no rows, but an entry alone.

The driver makes them by itself, in milliseconds, where rows could land as files (``files.way``).
Elsewhere Spark's writer makes them: it knows what such a table asks for, and its commits and those
of others in the same JVM exclude each other.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.spark.address import Address
from rivermouth.write.entry import record_entry
from rivermouth.write.files.commits import SmallCommits
from rivermouth.write.files.way import Way, way_into


class Recording:
    """Such commits of one pipeline into its table. ``way``: which one its configuration leaves."""

    def __init__(self, address: Address, way: Way, commits: SmallCommits) -> None:
        self._address, self._way, self._commits = address, way, commits

    def way(self) -> Way:
        """See ``TellsWay``."""
        if self._way.reason:
            return self._way
        self._commits.table.newest()
        return way_into(self._way, self._commits.table.definition())

    def may(self, plan: CommitPlan) -> bool:
        """Whether the plan is not stale, before its batch is read. Raises CommitConflict.

        What Spark commits, Delta judges as it commits.
        """
        return bool(self._way.reason) or self._commits.may(plan)

    def record(self, session: SparkSession, plan: CommitPlan, entry: Entry) -> None:
        """Make the commit of the plan with this entry; none where the plan is stale."""
        if self._way.reason:
            record_entry(session, entry, self._address)
        elif self._commits.may(plan):
            if way_into(self._way, self._commits.table.definition()).reason:
                record_entry(session, entry, self._address)
            else:
                self._commits.make(plan, entry)
