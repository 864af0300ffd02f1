"""What the driver commits by itself at a site: whether it may, and into which tables."""

from __future__ import annotations

from functools import partial

from rivermouth.config import Pipeline
from rivermouth.spark.commit_lock import can_lock, under_commit_lock
from rivermouth.write.files.quarantine import QuarantineFiles
from rivermouth.write.files.table import FilesTable
from rivermouth.write.files.way import ELSEWHERE, UNPINNED, Way, way_of, way_of_entries
from rivermouth.write.landing import Site


def rows_way(site: Site, config: Pipeline) -> Way:
    """Which way the configuration leaves to the commits of batches."""
    return way_of(config, site.others, why_not_here(site))


def entries_way(site: Site) -> Way:
    """Which way the configuration leaves to entries without rows."""
    if site.config is None:
        return Way("nothing is configured", alone=True)
    return way_of_entries(site.config, site.others, why_not_here(site))


def why_not_here(site: Site) -> str:
    """Why the driver commits nothing by itself at this site, in a clause; empty: it may."""
    if not (site.address.path and site.one_host):
        return ELSEWHERE
    return "" if can_lock(site.session) else UNPINNED


def table_of(site: Site) -> FilesTable:
    """The table of a pipeline, where the driver may commit to it."""
    path = site.address.path
    return FilesTable(path, site.pipeline, partial(under_commit_lock, site.session, path))


def quarantine_of(site: Site) -> QuarantineFiles:
    """Its quarantine, where the driver may commit to that."""
    path, reasons = site.quarantine.address.path, site.quarantine.reasons
    alone = partial(under_commit_lock, site.session, path)
    return QuarantineFiles(path, site.pipeline, reasons, alone)
