"""Where the checker finds the tables: in a folder, or (``catalog``) under names in a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from deltalake import DeltaTable

from rivermouth.config import TableName
from rivermouth.verify.ledger.commits import Commits, FolderCommits
from rivermouth.verify.tables.batches import FolderRows, Rows


class Tables(Protocol):
    """All tables of a configuration. What cannot be read raises Unreadable."""

    def commits(self, table: TableName) -> Commits:
        """The log of a table."""

    def rows(self, table: TableName, version: int | None = None) -> Rows:
        """The rows of a table at ``version`` (None: the newest)."""

    def exist(self, table: TableName) -> bool:
        """Whether there is such a table."""


class FolderTables:
    """The tables in the local warehouse ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commits(self, table: TableName) -> FolderCommits:
        """See ``Tables``."""
        return FolderCommits(table.path(self._folder))

    def rows(self, table: TableName, version: int | None = None) -> FolderRows:
        """See ``Tables``."""
        return FolderRows(table.path(self._folder), version)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        return DeltaTable.is_deltatable(str(table.path(self._folder)))
