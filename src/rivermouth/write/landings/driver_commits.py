"""What the driver commits by itself: whether it may, and commits that bring an entry alone.

The driver makes them by itself, in milliseconds, where rows could land as files. Elsewhere Spark's
writer makes them: it knows what such a table asks for, and its commits and those of others in the
same JVM exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.ways import ELSEWHERE, UNPINNED, Way, way_into, way_of, way_of_entries
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import can_lock, pins_threads, under_commit_lock
from rivermouth.storage.store import Store
from rivermouth.warehouse.spark_commits import record_entry
from rivermouth.write.files.bad_records import QuarantineFiles
from rivermouth.write.files.table import Alone, FilesTable

if TYPE_CHECKING:  # commits of entries alone load nothing of Spark
    from rivermouth.write.landing import Site


def rows_way(site: Site) -> Way:
    """Which way the configuration leaves to the commits of batches."""
    return way_of(site.pipeline, why_not_here(site))


def why_not_here(site: Site) -> str:
    """Why the driver commits nothing by itself at this site, in a clause; empty: it may."""
    if site.store is None:
        return ELSEWHERE
    if site.in_bucket:  # Spark commits nothing there
        return ""
    session = site.spark.started
    return "" if (pins_threads() if session is None else can_lock(session)) else UNPINNED


def alone(spark: Spark, path: str, act: Callable[[], object]) -> None:
    """Do something while Delta commits nothing to the table at ``path`` in the JVM of the run.

    Without a JVM nothing can.
    """
    session = spark.started
    if session is None:
        act()
    else:
        under_commit_lock(session, path, act)


def table_of(site: Site, *, batches: bool = False) -> FilesTable:
    """The table of a pipeline, where the driver may commit to it.

    ``batches``: of rows, one after the other. Who makes them lets it ``settle`` at the end.
    """
    store, commits = site.store or _NOWHERE, _alone(site, site.address.path)
    return FilesTable(store, site.pipeline.name, commits, files=batches, beside=batches)


def quarantine_of(site: Site) -> QuarantineFiles:
    """Its quarantine, where the driver may commit to that."""
    store, reasons = site.bad or _NOWHERE, site.quarantine.reasons
    commits = _alone(site, site.quarantine.address.path)
    return QuarantineFiles(store, site.pipeline.name, reasons, commits)


def _alone(site: Site, path: str) -> Alone:
    return (lambda act: act()) if site.in_bucket else partial(alone, site.spark, path)


_NOWHERE = Store.of_folder(Path())
"""What stands for a table that the driver never commits to."""


def record(site: Site, plan: CommitPlan) -> None:
    """Make the commit of a plan that brings no rows; none where the plan is stale.

    Raises CommitConflict where others have committed since the plan.
    """
    Recording(site).record(plan, plan.empty_entry())


class Recording:
    """Commits of entries alone, for one pipeline."""

    def __init__(self, site: Site) -> None:
        self._spark, self._address, self._table = site.spark, site.address, table_of(site)
        self._way = way_of_entries(site.pipeline, why_not_here(site))

    def may(self, plan: CommitPlan) -> bool:
        """Whether the plan is not stale, before its batch is read. Raises CommitConflict.

        What Spark commits, Delta judges as it commits.
        """
        return bool(self._way.reason) or self._table.may(plan)

    def record(self, plan: CommitPlan, entry: Entry) -> None:
        """Make the commit of the plan with this entry; none where the plan is stale."""
        if self._way.reason:
            record_entry(self._spark.session(), entry, self._address)
        elif self._table.may(plan):
            if way_into(self._way, self._table.definition()).reason:
                record_entry(self._spark.session(), entry, self._address)
            else:
                self._table.commit(plan, entry)
