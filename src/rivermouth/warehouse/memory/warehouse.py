"""A warehouse in memory: ledgers without tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from rivermouth.config import OFFSETS_TABLE, Pipeline, TableName
from rivermouth.errors import BatchFailed, RivermouthError
from rivermouth.protocol.commits import CommitPlan, Recorded
from rivermouth.spark.address import Address
from rivermouth.warehouse.memory.log import MemoryLog, MemoryTable
from rivermouth.warehouse.memory.offsets import MemoryOffsets
from rivermouth.warehouse.ports import Counted, LedgerStore, LedgerWrites


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
