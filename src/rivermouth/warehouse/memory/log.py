"""The log of a table in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rivermouth.errors import LogUnreadable
from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.warehouse.ports import TableFacts

_MONTH_S = 30 * 86400.0


@dataclass
class MemoryTable:
    """What a table's log holds; without ``commits`` there is no table.

    ``first_version``: log clean-up has taken what comes before it.
    ``tells_txn``: whether the log tells ``txn`` versions, as that of a catalog does not.
    """

    table_id: str = "table-1"
    commits: list[CommitRecord] = field(
        default_factory=lambda: [CommitRecord(0, 0, "CREATE TABLE", {}, {}, None)]
    )
    first_version: int = 0
    tells_txn: bool = True

    def txn(self, app: str) -> int:
        """The version of the newest ``txn`` of ``app``; neither clean-up nor RESTORE takes it."""
        return max((each.txns.get(app, 0) for each in self.commits), default=0)

    def commit(self, entry: Entry) -> int | None:
        """As Delta does: nothing, silently, where the ``txn`` is not above the recorded one.

        Returns the new version, or None. The time of a commit is its version, in ms.
        """
        app = app_id(entry.pipeline)
        if self.txn(app) >= entry.sequence:
            return None
        return self._add("WRITE", {}, {app: entry.sequence}, to_json(entry))

    def did(self, operation: str, **parameters: object) -> int:
        """A commit of somebody else; returns its version."""
        return self._add(operation, parameters, {}, None)

    def _add(
        self,
        operation: str,
        parameters: dict[str, object],
        txns: dict[str, int],
        metadata: str | None,
    ) -> int:
        version = len(self.commits)
        self.commits.append(CommitRecord(version, version, operation, parameters, txns, metadata))
        return version


class MemoryLog:
    """The ``LedgerLog`` of a table in memory."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table

    def commits(self) -> Iterator[CommitRecord]:
        """See ``LedgerLog``."""
        return iter(self._table.commits[self._table.first_version :])

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """See ``LedgerLog``."""
        return iter(self._table.commits[version + 1 :])

    def commits_backwards(self) -> Iterator[CommitRecord]:
        """See ``LedgerLog``."""
        return reversed(self._table.commits[self._table.first_version :])

    def newest_record_ms(self, version: int) -> None:
        """See ``LedgerLog``: there are no records."""

    def table(self, app: str) -> TableFacts:
        """See ``LedgerLog``."""
        table = self._table
        if not table.commits:
            raise LogUnreadable("there is no table", where=table.table_id)
        return TableFacts(table.table_id, table.txn(app) if table.tells_txn else None, _MONTH_S)
