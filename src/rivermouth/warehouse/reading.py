"""Reading a pipeline's ledger: from the log of its table and the offsets table to one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rivermouth.config import Pipeline
from rivermouth.protocol.commits import Recorded, app_id
from rivermouth.protocol.guards import neighbours
from rivermouth.protocol.history import History
from rivermouth.protocol.replay import replay
from rivermouth.protocol.snapshot import LedgerSnapshot, ProjectedEntry, snapshot_txn
from rivermouth.warehouse.ports import LedgerLog, LedgerStore


def read_ledger(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot:
    """The ledger as it is now, its whole readable log replayed. What is broken is in the value.

    Raises LogUnreadable and OffsetsTableUnreadable.
    """
    name, log, offsets = pipeline.name, store.log, store.offsets
    where = f"{name} {pipeline.target.table}"
    history, entries = replay(History(name, where), log.commits())
    there = history.version is not None
    told = log.txn_version(app_id(name)) if there else 0
    kept = offsets.newest(name) if history.newest is None and told != 0 else None
    txn = snapshot_txn(told, history, kept)
    table = log.table_id() if there else ""
    others: tuple[History, ...] = ()
    if history.newest is None and not history.faults and txn:
        if kept is not None and kept.sequence == txn:
            history, entries = _recovered(log, history, kept, table, pipeline.identity)
    elif history.newest is None:
        others = neighbours(log.commits(), name)
    return LedgerSnapshot(
        history=history,
        entries=entries,
        table=table,
        txn=txn,
        projected=offsets.sequence(name),
        last_projected=kept,
        rollback_noted=offsets.rollback_noted(name),
        retention_s=log.retention_s() if there else 0.0,
        others=others,
    )


def _recovered(
    log: LedgerLog,
    history: History,
    kept: ProjectedEntry,
    table: str,
    identity: Mapping[str, Any],
) -> tuple[History, tuple[Recorded, ...]]:
    """The history once more, from the entry on that only the offsets table knows."""
    entry = kept.as_entry(history.pipeline, table, identity)
    begun = History.recovered_from(history.pipeline, history.where, entry)
    return replay(begun, log.commits())
