"""A warehouse in memory, for tests: what the real ones promise, without Spark and files."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from rivermouth.config import OFFSETS_TABLE, Pipeline, TableName
from rivermouth.errors import BatchFailed, LogUnreadable, RivermouthError
from rivermouth.protocol.commits import CommitPlan, CommitRecord, Recorded, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.snapshot import ProjectedEntry
from rivermouth.spark.tables import Address
from rivermouth.warehouse.ports import Counted, LedgerStore, LedgerWrites, Projection, TableFacts

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
    projected: list[Counted] = field(default_factory=list)
    txns: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def sequence(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        if self.tells_txn:
            return self.txns.get(pipeline, 0)
        newest = self.newest(pipeline)
        return newest.sequence if newest is not None else 0

    def newest(self, pipeline: str) -> ProjectedEntry | None:
        """See ``ports.OffsetsTable``."""
        recorded = [each.recorded for each in self.projected if each.rows]
        ours = [each for each in recorded if each.entry.pipeline == pipeline]
        if not ours:
            return None
        last, version = ours[-1].entry, ours[-1].version
        return ProjectedEntry(
            last.sequence, version, last.commit, last.cluster, last.topics, last.position
        )

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        return self.noted.get(pipeline, 0)

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        self.noted[pipeline] = max(version, self.rollback_noted(pipeline))

    def project(self, entries: Sequence[Counted], table_name: str) -> None:
        """See ``ports.OffsetsTable``."""
        del table_name
        with self._turn:
            for each in entries:
                entry = each.recorded.entry
                if entry.sequence > self.sequence(entry.pipeline) and (each.rows or self.tells_txn):
                    self.projected.append(each)
                    self.txns[entry.pipeline] = entry.sequence

    def project_all(self, projections: Sequence[Projection]) -> None:
        """See ``ports.OffsetsTable``."""
        for each in projections:
            self.project(each.entries, each.table_name)

    def version(self) -> int:
        """See ``ports.OffsetsTable``: there are no versions."""
        return 0

    def compact(self) -> None:
        """See ``ports.OffsetsTable``: there are no files."""

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``: all is kept."""


@dataclass
class MemoryWarehouse:
    """The ``Warehouse`` in memory. Its tables exist as soon as they are asked for."""

    offsets_table: MemoryOffsets = field(default_factory=MemoryOffsets)
    tables: dict[TableName, MemoryTable] = field(default_factory=dict)

    def table(self, name: TableName) -> MemoryTable:
        """The table of that name."""
        return self.tables.setdefault(name, MemoryTable())

    def address(self, table: TableName) -> Address:
        """See ``Warehouse``: an address that nobody reads."""
        return Address(path=f"memory/{table}")

    def offsets(self) -> Address:
        """See ``Warehouse``."""
        return self.address(OFFSETS_TABLE)

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Warehouse``: no other process has this memory."""
        del table
        yield

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """See ``Warehouse``."""
        return LedgerStore(MemoryLog(self.table(pipeline.target.table)), self.offsets_table)

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """See ``Warehouse``."""
        table = self.table(pipeline.target.table)

        def record(session: object, plan: CommitPlan) -> None:
            del session
            table.commit(plan.empty_entry())

        return LedgerWrites(
            count=counted, record=record, translate=partial(_translate, where=pipeline.name)
        )

    def scratch(self) -> None:
        """See ``Warehouse``: the driver's own folder will do."""

    def prepare(self, session: object, pipeline: Pipeline) -> None:
        """See ``Warehouse``: nothing is needed."""


def counted(entries: Sequence[Recorded]) -> list[Counted]:
    """Entries with the counts that they carry; there are no rows to count."""
    return [Counted(each, each.entry.rows or ()) for each in entries]


def _translate(fault: Exception, where: str) -> RivermouthError:
    return BatchFailed("the write failed", where=where, found=repr(fault))
