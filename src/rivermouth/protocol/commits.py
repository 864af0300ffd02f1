"""Commits: one that is planned, one that is found in a log, and what became of ours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.entry import Counts, Draft, Entry, RowCounts
from rivermouth.protocol.entry_json import from_json

APP_PREFIX = "rivermouth/"


def app_id(pipeline: str) -> str:
    """The ``appId`` of the pipeline's ``txn`` actions."""
    return APP_PREFIX + pipeline


@dataclass(frozen=True)
class CommitRecord:
    """One commit of a table's log, as the ledger looks at it.

    ``txns`` maps appId to version for the ``txn`` actions of this commit. ``parameters``
    are Delta's ``operationParameters``; ``timestamp_ms`` is when Delta says it happened.
    ``deleted_rows`` is how many rows a DELETE took, as its writer says; None: it does not.
    ``engine`` is the program that wrote it, as that says; empty: it does not.
    """

    version: int
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, Any]
    txns: Mapping[str, int]
    user_metadata: str | None
    deleted_rows: int | None = None
    engine: str = ""


@dataclass(frozen=True)
class Recorded:
    """An entry where it stands in the log."""

    version: int
    timestamp_ms: int
    entry: Entry

    def counted(self, rows: Counts) -> Recorded:
        """The same with these counts."""
        return replace(self, entry=replace(self.entry, rows=rows))


def deleted_rows(metrics: Mapping[str, Any] | None) -> int | None:
    """How many rows a DELETE took, from its ``operationMetrics``; Spark's name, and deltalake's."""
    names = ("numDeletedRows", "num_deleted_rows")
    found = (str((metrics or {}).get(name)) for name in names)
    return next((int(each) for each in found if each.isdigit()), None)


class Purpose(Enum):
    """What a commit of ours is for."""

    BATCH = "batch"
    DISCOVERY = "discovery"
    """Records where newly discovered partitions start."""
    LOSS = "loss"
    """Records what Kafka deleted before it was read."""
    HEARTBEAT = "heartbeat"
    """Writes the newest position again, before log clean-up takes its entry."""
    RESUME = "resume"
    """Records what an operator accepted."""
    REPLAY = "replay"
    """Applies records once more that earlier entries cover; moves no offset."""


@dataclass(frozen=True)
class CommitPlan:
    """A commit before it is made: what it will say, and on which condition it may stand.

    The condition is Delta's compare-and-swap: no ``txn`` of ``app`` has reached ``sequence``.
    ``base`` is the version of the table that the plan was made on.
    """

    purpose: Purpose
    draft: Draft
    commit: str
    base: int | None

    @property
    def app(self) -> str:
        """The ``appId`` that the commit and its condition are about."""
        return app_id(self.draft.pipeline)

    @property
    def sequence(self) -> int:
        """The ``txn`` version of the commit."""
        return self.draft.sequence

    def entry(self, rows: Counts | None = None, left_out: int = 0) -> Entry:
        """The entry that the commit will carry, with the counts where they are known."""
        return self.draft.entry(self.commit, self.base, rows, left_out)

    def empty_entry(self) -> Entry:
        """The entry of a commit that brings no rows."""
        return self.entry((RowCounts(0, 0),) * len(self.draft.ranges))

    def again(self, commit: str, base: int | None) -> CommitPlan:
        """The same ranges under the same sequence, for another attempt."""
        return replace(self, commit=commit, base=base)


class Outcome(Enum):
    """What became of a write of ours, judged on the log read back."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already committed"
    SUPERSEDED = "superseded"
    ABSENT = "absent"


def classify(ours: CommitPlan, since: Iterable[CommitRecord]) -> Outcome:
    """Judge our write on the commits that came after the version it was planned from.

    ABSENT means that neither our entry nor any other with its sequence is there: the write did
    not happen.
    """
    rival = Outcome.ABSENT
    for record in since:
        entry = entry_of(record, ours.draft.pipeline)
        if entry is not None and entry.commit == ours.commit:
            return Outcome.COMMITTED
        if entry is not None and entry.sequence == ours.sequence:
            same = entry.ranges == ours.draft.ranges
            rival = Outcome.ALREADY_COMMITTED if same else Outcome.SUPERSEDED
        elif record.txns.get(ours.app, 0) >= ours.sequence:
            rival = Outcome.SUPERSEDED
    return rival


def entry_of(record: CommitRecord, pipeline: str) -> Entry | None:
    """The pipeline's entry in a commit; None where the commit carries none of its ``txn``.

    ``userMetadata`` alone proves nothing: a session conf may stamp it on any commit.
    Raises LedgerBroken for a text that claims to be an entry and cannot be read.
    """
    if record.user_metadata is None or app_id(pipeline) not in record.txns:
        return None
    entry = from_json(record.user_metadata)
    return entry if entry is not None and entry.pipeline == pipeline else None


def readable_entry(record: CommitRecord, pipeline: str) -> Entry | None:
    """As ``entry_of``, with None for what cannot be read: the replay tells of that."""
    with suppress(LedgerBroken):
        return entry_of(record, pipeline)
    return None
