"""A table's log and the offsets table in memory: what the real ones promise."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from rivermouth.errors import LogUnreadable
from rivermouth.protocol.commits import CommitRecord, Recorded, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.warehouse.offsets_rows import newest_of, rows_of
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


@dataclass
class MemoryOffsets:
    """The ``OffsetsTable`` in memory: the entries that were projected, in order.

    ``tells_txn``: whether a ``txn`` tells the newest sequence; else, as in a catalog, only the
    rows do, and an entry without ranges leaves none.
    """

    tells_txn: bool = True
    projected: list[Recorded] = field(default_factory=list)
    txns: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def sequence(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        if self.tells_txn:
            return self.txns.get(pipeline, 0)
        return max((each.entry.sequence for each in self._with_rows(pipeline)), default=0)

    def newest(self, pipeline: str) -> Recorded | None:
        """See ``ports.OffsetsTable``."""
        return newest_of(rows_of(self._with_rows(pipeline)).to_pylist())

    def _with_rows(self, pipeline: str) -> list[Recorded]:
        ours = (each for each in self.projected if each.entry.pipeline == pipeline)
        return [each for each in ours if each.entry.ranges]

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        return self.noted.get(pipeline, 0)

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        self.noted[pipeline] = max(version, self.rollback_noted(pipeline))

    def project(self, entries: Sequence[Recorded]) -> None:
        """See ``ports.OffsetsTable``."""
        with self._turn:
            for each in entries:
                entry = each.entry
                is_new = entry.sequence > self.sequence(entry.pipeline)
                if is_new and (entry.ranges or self.tells_txn):
                    self.projected.append(each)
                    self.txns[entry.pipeline] = entry.sequence

    def version(self) -> int:
        """See ``ports.OffsetsTable``: there are no versions."""
        return 0

    def compact(self) -> None:
        """See ``ports.OffsetsTable``: there are no files."""

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``: all is kept."""
