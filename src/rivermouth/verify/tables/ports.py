"""What the checker asks of tables, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from rivermouth.config import TableName
from rivermouth.verify.ledger.commits import Commits


class Unreadable(Exception):
    """A table, or a part of it, cannot be read; the text says why."""


class Rows(Protocol):
    """The rows of a table at one version."""

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""

    def transaction(self, app: str) -> int | None:
        """The version of the newest ``txn`` of ``app`` in the snapshot.

        0 where there is none, None where the warehouse does not tell.
        """

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows, in no order, with ``columns`` only, in canonical values (see ``Reader``).

        ``predicate`` is a condition in SQL. Raises Unreadable.
        """


class Tables(Protocol):
    """All tables of a configuration. Each method raises Unreadable for what cannot be read."""

    def commits(self, table: TableName) -> Commits:
        """The log of a table."""

    def rows(self, table: TableName, version: int | None = None) -> Rows:
        """The rows of a table at ``version`` (None: the newest)."""

    def exist(self, table: TableName) -> bool:
        """Whether there is such a table."""
