"""Reading a pipeline's ledger: from the log of its table and the offsets table to one value.

An entry names its ``base``: the version of the table that its driver had read. All up to there
passed that driver's guards. So a start reads from the newest entry's base on, and further back
only for what it has to do itself: entries that the offsets table lacks, and a RESTORE after that
base, which leads back to the entry that it left in effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rivermouth.config import Pipeline, Topics
from rivermouth.protocol.commits import CommitRecord, Recorded, app_id, readable_entry
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.guards import neighbours
from rivermouth.protocol.history import History, rolls_back
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot, snapshot_txn
from rivermouth.warehouse.ports import LedgerLog, LedgerStore, TableFacts


def end_of_log(
    newest_first: Iterable[CommitRecord], pipeline: str, projected: int
) -> list[CommitRecord]:
    """The commits of a table that a start has to replay, in order.

    Of ``newest_first`` no more is taken than is needed.

    ``projected`` is the newest sequence in the offsets table. All are taken where there is no
    entry.
    """
    found: list[CommitRecord] = []
    back_to: int | None = None
    """The entry to begin with is at this version or before; None: anywhere."""
    ends_at: int | None = None
    for record in newest_first:
        if ends_at is not None and record.version <= ends_at:
            break
        found.append(record)
        if rolls_back(record):
            back_to, ends_at = _leads_back(back_to, record), None
        entry = readable_entry(record, pipeline)
        if entry is None or ends_at is not None:
            continue
        is_old_enough = back_to is None or record.version <= back_to
        if is_old_enough and entry.sequence <= projected + 1:
            ends_at = entry.base
    return found[::-1]


def _leads_back(back_to: int | None, record: CommitRecord) -> int | None:
    """The version back to which a rollback leads, where a later one leads to ``back_to``.

    A RESTORE leads to its version. Any other leaves nothing in effect; where a later RESTORE may
    have gone back to that, reading starts where the partitions once did, which the first entry
    tells.
    """
    if record.operation != "RESTORE":
        return None if back_to is None else _TO_THE_FIRST
    to = str(record.parameters.get("version"))
    found = [each for each in (back_to, int(to) if to.isdigit() else None) if each is not None]
    return min(found, default=None)


_TO_THE_FIRST = -1


class Others:
    """What a start must know of others where its ledger lacks a topic, see ``guards.check_alone``.

    The first reading takes the whole log, each later one what was committed since, if the log still
    has all of that.
    """

    def __init__(self, log: LedgerLog, pipeline: str) -> None:
        self._log = log
        self._pipeline = pipeline
        self._known: Mapping[str, History] | None = None

    def read(self) -> tuple[History, ...]:
        """The ledgers of others as they are now. Raises LogUnreadable and LedgerBroken."""
        known = self._read_on()
        if known is None:
            known = neighbours(self._log.commits(), self._pipeline)
        self._known = known
        return tuple(each for name, each in sorted(known.items()) if name)

    def _read_on(self) -> Mapping[str, History] | None:
        """From what is known; None where nothing is, or log clean-up took what followed on it."""
        version = self._known[""].version if self._known is not None else None
        if version is None:
            return None
        known = neighbours(self._log.commits_after(version), self._pipeline, self._known)
        newest = next(iter(self._log.commits_backwards()), None)
        return known if newest is None or (known[""].version or 0) >= newest.version else None


def read_ledger(
    store: LedgerStore, pipeline: Pipeline, others: Others | None = None
) -> LedgerSnapshot:
    """The ledger as it is now, from the end of the log: enough to say what a run would do.

    Of the log is read what the newest entry's driver did not know, see ``end_of_log``: that does
    not grow with the log. All of it is read while the ledger has no position of a configured topic:
    another pipeline may have read it into this table (``others`` is what was read of that before).
    What is broken there is in the value. Raises LogUnreadable, OffsetsUnreadable, and LedgerBroken
    where a commit is missing.
    """
    projected = store.offsets.sequence(pipeline.ledger_name)
    recent = end_of_log(store.log.commits_backwards(), pipeline.ledger_name, projected)
    return _replayed(store, pipeline, recent, projected, others)


def audit_ledger(
    store: LedgerStore, pipeline: Pipeline, others: Others | None = None
) -> LedgerSnapshot:
    """The same with the whole readable log replayed: all entries, and what is broken anywhere."""
    projected = store.offsets.sequence(pipeline.ledger_name)
    return _replayed(store, pipeline, store.log.commits(), projected, others)


def read_on(
    store: LedgerStore, pipeline: Pipeline, ledger: LedgerSnapshot
) -> LedgerSnapshot | None:
    """The ledger with what was committed since ``ledger`` was read; None where nothing was."""
    version = ledger.history.version
    if version is None:
        return None
    since = [*store.log.commits_after(version)]
    if not since:
        return None
    history, entries = replay(ledger.history, since)
    projected = store.offsets.sequence(pipeline.ledger_name)
    found = _snapshot(store, pipeline, projected, history, (*ledger.entries, *entries))
    return with_others(found, pipeline, Others(store.log, pipeline.ledger_name))


def with_others(ledger: LedgerSnapshot, pipeline: Pipeline, others: Others) -> LedgerSnapshot:
    """The ledger with those of others in its table, where it has no position of a topic.

    A pattern that Kafka was not asked for names no topic: then it is so without any position.
    Where single partitions were assigned, or are, others may have read the rest of them.
    """
    return (
        replace(ledger, others=others.read())
        if _is_new(pipeline.source.topics, ledger.newest)
        else ledger
    )


def _is_new(topics: Topics, newest: Entry | None) -> bool:
    """Whether a topic may be read that the ledger does not know, or a part of one."""
    begun = topics_begun(newest)
    if newest is None or not {*topics} <= begun or not begun:
        return True
    if topics.assigned:
        return any(
            newest.position.get(TopicPartition(name, each)) is None
            for name, numbers in topics.assigned.items()
            for each in numbers
        )
    return not newest.assigned.isdisjoint(topics)


def _replayed(
    store: LedgerStore,
    pipeline: Pipeline,
    commits: Iterable[CommitRecord],
    projected: int,
    others: Others | None,
) -> LedgerSnapshot:
    begun = History(pipeline.ledger_name, f"{pipeline.name} {pipeline.target.table}")
    found = _snapshot(store, pipeline, projected, *replay(begun, commits))
    return with_others(found, pipeline, others or Others(store.log, pipeline.ledger_name))


def _snapshot(
    store: LedgerStore,
    pipeline: Pipeline,
    projected: int,
    history: History,
    entries: tuple[Recorded, ...],
) -> LedgerSnapshot:
    name, log, offsets = pipeline.ledger_name, store.log, store.offsets
    there = history.version is not None
    facts = log.table(app_id(name)) if there else TableFacts("", 0, 0.0)
    newest = offsets.newest(name) if history.newest is None and facts.txn != 0 else None
    txn = snapshot_txn(facts.txn, history, newest)
    lost = history.newest is None and not history.faults and txn > 0
    if lost and newest is not None and newest.entry.sequence == txn:
        recovered = replace(newest.entry, table=facts.table_id, config=pipeline.identity)
        begun = History.recovered_from(name, history.where, recovered)
        history, entries = replay(begun, log.commits())
    return LedgerSnapshot(
        history=history,
        entries=entries,
        table=facts.table_id,
        txn=txn,
        projected=projected,
        last_projected=newest,
        rollback_noted=offsets.rollback_noted(name),
        retention_s=facts.retention_s,
    )
