"""What an operator accepts: rollbacks, changes of the source, DELETEs of others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rivermouth.config import Pipeline
from rivermouth.errors import ResumeRefused
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import facts_of, with_times
from rivermouth.protocol.accept_changes import (
    Offsets,
    ResumePlan,
    accept_changes,
    logs_to_ask_about,
)
from rivermouth.protocol.accept_deletes import (
    RUNS_IN_ALL,
    DeleteInEffect,
    deleted,
    deletes_draft,
    deletes_in_effect,
    parts_of_records,
    shared_offsets,
)
from rivermouth.protocol.accept_rollback import nothing_left, resume
from rivermouth.protocol.assess import assess
from rivermouth.protocol.commits import Purpose
from rivermouth.protocol.entry import Deleted, accepted_changes, portions
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.run.committer import Committer, Coordinates
from rivermouth.warehouse.ledger import read_ledger
from rivermouth.warehouse.ports import LedgerLog


def plan_resume(
    ledger: LedgerSnapshot,
    kafka: Kafka,
    pipeline: Pipeline,
    accept: str,
    offsets: Offsets | None = None,
) -> ResumePlan:
    """The entry that accepts what happened, and what it means.

    ``accept`` is ``restore`` or ``reset``, see ``protocol.accept_rollback``, or kinds of changes
    with commas, see ``protocol.accept_changes``, as is ``offsets``. Raises ResumeRefused where
    something else happened.
    """
    facts = with_times(kafka, facts_of(kafka, pipeline), pipeline)
    changes = accepted_changes(accept)
    if changes:
        truncated = kafka.truncated_logs(logs_to_ask_about(ledger.newest, facts))
        facts = replace(facts, truncated=truncated)
        draft = accept_changes(ledger, facts, pipeline, changes, offsets)
    else:
        draft = resume(ledger, facts, pipeline, accept)
    return ResumePlan.of(ledger.newest, draft, facts)


def check_no_other_rollback(history: History, log: LedgerLog) -> None:
    """Raise where entries were rolled back, or put back, since the ledger was read.

    Where another driver has accepted what was rolled back, its entry says so to the attempt.
    """
    now, _ = replay(history, log.commits_after(history.version or 0))
    if now.rolled_back_by == history.rolled_back_by:
        return
    if now.faults:
        raise now.faults[-1]
    if now.sequence == history.sequence:
        raise nothing_left(now)


_DELETES = "deletes"
"""What ``accept-deletes`` accepts, in a trace."""
RowsOf = Callable[[int, int, bool], Sequence[OffsetRange] | None]
"""The rows that the commit at a version took, as at most so many runs; None: nobody can tell. And
whether one offset may be that of several rows.
"""


@dataclass(frozen=True)
class AcceptedDelete:
    """A DELETE of others as the log tells it, and what an entry says of it.

    ``rows`` are the pipeline's rows that it took; where they are not ``listed``, at most so many.
    """

    version: int
    operation: str
    predicate: str
    timestamp_ms: int
    deleted_rows: int | None
    rows: int
    listed: bool

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return vars(self)


def accept_deletes(
    coordinates: Coordinates,
    versions: Sequence[int],
    rows_of: RowsOf,
    tell: Callable[[AcceptedDelete], object],
    *,
    dry_run: bool = False,
) -> tuple[AcceptedDelete, ...]:
    """Record in the ledger which rows the DELETEs at ``versions`` took.

    The table is ours to write. ``tell`` is called for each before anything is written; where
    ``dry_run``, nothing is. Raises ResumeRefused, and the Halt that a run would meet.
    """
    at, pipeline = coordinates, coordinates.pipeline
    _check_erasable(pipeline)
    ledger = read_ledger(at.store, pipeline)
    found = assess(ledger, None, pipeline, time.time())
    if found.halt is not None:
        raise found.halt
    history = ledger.history
    deletes_draft(history, ledger.table, ())  # refused where there is no entry yet
    since = at.store.log.commits_after(min(versions) - 1)
    standing = deletes_in_effect(since, history, versions)
    shared = (
        shared_offsets(history)
        or pipeline.target.explode
        or parts_of_records(at.store.log.commits_backwards(), history.pipeline)
    )
    accepted = [
        deleted(each, history, rows_of(each.commit.version, RUNS_IN_ALL, shared))
        for each in standing
    ]
    shown = tuple(_shown(*each) for each in zip(standing, accepted, strict=True))
    for each in shown:
        tell(each)
    if dry_run:
        return shown
    named = {"accept": _DELETES, "versions": [*versions]}
    committer = Committer.opened(ledger, at, found.to_project, **named)
    for portion in portions(accepted):
        draft = deletes_draft(committer.history, ledger.table, portion)
        committer.record(committer.plan(Purpose.RESUME, draft))
    return shown


def _check_erasable(pipeline: Pipeline) -> None:
    if not pipeline.shape.erasable:
        raise ResumeRefused(
            "deleted rows of this mode cannot be accepted",
            where=pipeline.name,
            expected="a mode in which a later record cannot make the row anew",
            found=f"mode {pipeline.target.mode}: {pipeline.shape.summary}",
            remedy="Let rivermouth read the topic into a new table, without these records",
        )


def _shown(standing: DeleteInEffect, accepted: Deleted) -> AcceptedDelete:
    commit = standing.commit
    return AcceptedDelete(
        version=commit.version,
        operation=commit.operation,
        predicate=str(commit.parameters.get("predicate", "")),
        timestamp_ms=commit.timestamp_ms,
        deleted_rows=commit.deleted_rows,
        rows=accepted.count,
        listed=not accepted.unlisted,
    )
