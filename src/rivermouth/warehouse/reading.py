"""Reading a pipeline's ledger: from the log of its table and the offsets table to one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rivermouth.config import Pipeline
from rivermouth.protocol.commits import CommitRecord, Recorded, app_id, entry_of
from rivermouth.protocol.guards import neighbours
from rivermouth.protocol.history import History
from rivermouth.protocol.replay import replay
from rivermouth.protocol.rollback import rolls_back
from rivermouth.protocol.snapshot import LedgerSnapshot, ProjectedEntry, snapshot_txn
from rivermouth.warehouse.ports import LedgerLog, LedgerStore

_LOOK_BACK = 1000
"""How many commits are looked through before the whole log is read."""


def read_ledger(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot:
    """The ledger as it is now, its whole readable log replayed. What is broken is in the value.

    Raises LogUnreadable and OffsetsUnreadable.
    """
    return _snapshot(store, pipeline, store.log.commits())


def read_recent_ledger(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot:
    """The same from the end of the log, where that is enough to say what a run would do.

    What the whole log is replayed for besides, an audit of all old entries, is left out.
    """
    recent = _recent(store, pipeline)
    return read_ledger(store, pipeline) if recent is None else _snapshot(store, pipeline, recent)


def _recent(store: LedgerStore, pipeline: Pipeline) -> list[CommitRecord] | None:
    """The commits from the version on that the newest entry was planned on, and from the first
    entry on that the offsets table lacks; None where these do not tell everything.
    """
    projected = store.offsets.sequence(pipeline.name)
    found: list[CommitRecord] = []
    base: int | None = None
    for record in store.log.commits_backwards():
        if base is not None and record.version <= base:
            return found[::-1]
        found.append(record)
        entry = entry_of(record, pipeline.name)
        if rolls_back(record) or len(found) > _LOOK_BACK or (entry and entry.base is None):
            return None
        if entry is not None and entry.sequence <= projected + 1:
            base = entry.base if base is None else base
    return None


def _snapshot(
    store: LedgerStore, pipeline: Pipeline, commits: Iterable[CommitRecord]
) -> LedgerSnapshot:
    name, log, offsets = pipeline.name, store.log, store.offsets
    where = f"{name} {pipeline.target.table}"
    history, entries = replay(History(name, where), commits)
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
