"""What the driver commits by itself: whether it may, and commits that bring an entry alone.

The driver makes them by itself, in milliseconds, where rows could land as files. Elsewhere Spark's
writer makes them: it knows what such a table asks for, and its commits and those of others in the
same JVM exclude each other.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.ways import ELSEWHERE, UNPINNED, Way, way_into, way_of, way_of_entries
from rivermouth.spark.tables import can_lock, under_commit_lock
from rivermouth.warehouse.spark_commits import record_entry
from rivermouth.write.files.bad_records import QuarantineFiles
from rivermouth.write.files.table import FilesTable
from rivermouth.write.landing import Site


def rows_way(site: Site) -> Way:
    """Which way the configuration leaves to the commits of batches."""
    return way_of(site.pipeline, site.others, why_not_here(site))


def why_not_here(site: Site) -> str:
    """Why the driver commits nothing by itself at this site, in a clause; empty: it may."""
    if not (site.address.path and site.one_host):
        return ELSEWHERE
    return "" if can_lock(site.session) else UNPINNED


def table_of(site: Site) -> FilesTable:
    """The table of a pipeline, where the driver may commit to it."""
    path = site.address.path
    return FilesTable(path, site.pipeline.name, partial(under_commit_lock, site.session, path))


def quarantine_of(site: Site) -> QuarantineFiles:
    """Its quarantine, where the driver may commit to that."""
    path, reasons = site.quarantine.address.path, site.quarantine.reasons
    alone = partial(under_commit_lock, site.session, path)
    return QuarantineFiles(path, site.pipeline.name, reasons, alone)


def record(site: Site, session: SparkSession, plan: CommitPlan) -> None:
    """Make the commit of a plan that brings no rows; none where the plan is stale.

    Raises CommitConflict where others have committed since the plan.
    """
    Recording(site).record(session, plan, plan.empty_entry())


class Recording:
    """Commits of entries alone, for one pipeline."""

    def __init__(self, site: Site) -> None:
        self._address, self._table = site.address, table_of(site)
        self._way = way_of_entries(site.pipeline, site.others, why_not_here(site))

    def may(self, plan: CommitPlan) -> bool:
        """Whether the plan is not stale, before its batch is read. Raises CommitConflict.

        What Spark commits, Delta judges as it commits.
        """
        return bool(self._way.reason) or self._table.may(plan)

    def record(self, session: SparkSession, plan: CommitPlan, entry: Entry) -> None:
        """Make the commit of the plan with this entry; none where the plan is stale."""
        if self._way.reason:
            record_entry(session, entry, self._address)
        elif self._table.may(plan):
            if way_into(self._way, self._table.definition()).reason:
                record_entry(session, entry, self._address)
            else:
                self._table.commit(plan, entry)
