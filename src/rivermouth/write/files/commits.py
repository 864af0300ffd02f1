"""Commits of a pipeline by its driver alone: planned on a version, and made as the one after it.

A commit that somebody else has made since is noticed before one of ours is begun. One that comes
later still is noticed by the log itself, which takes each version once.
"""

from __future__ import annotations

from collections.abc import Iterable

from rivermouth.debug.failpoints import reach
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.write.files.file import DataFile
from rivermouth.write.files.table import FilesTable


class SmallCommits:
    """Such commits into one table."""

    def __init__(self, table: FilesTable) -> None:
        self.table = table

    def may(self, plan: CommitPlan) -> bool:
        """Whether the plan is not stale, as Delta would say.

        What is made from now on follows on the version that was seen here. Raises CommitConflict
        where somebody has committed since the plan, and BatchFailed where the log no longer holds
        the version of the plan: the next opening tells why.
        """
        newest = self.table.newest()
        if plan.base is not None and newest < plan.base:
            raise self.table.shorter(newest, plan.base)
        if plan.base is not None and newest > plan.base:
            raise self.table.conflict(newest)
        return self.table.txn(plan.app) < plan.sequence

    def make(self, plan: CommitPlan, entry: Entry, files: Iterable[DataFile] = ()) -> None:
        """Make the commit of the plan, which ``may`` allows. Raises as ``FilesTable.append``."""
        reach("P17")
        self.table.append(files, to_json(entry), (plan.app, plan.sequence))
        reach("P18")
        self.table.keep_up()
