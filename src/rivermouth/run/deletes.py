"""Accepting DELETEs of others in a pipeline's table: read, check, and write the entries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.errors import ResumeRefused
from rivermouth.protocol.accept_deletes import (
    RUNS_IN_ALL,
    StandingDelete,
    deleted,
    deletes_draft,
    parts_of_records,
    shared_offsets,
    standing_deletes,
)
from rivermouth.protocol.assess import assess
from rivermouth.protocol.commits import Purpose
from rivermouth.protocol.deleted import Deleted, portions
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.run.committer import Committer, Coordinates
from rivermouth.run.opening import DELETES, trace_open
from rivermouth.warehouse.reading import read_ledger

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
    session: SparkSession,
    pipeline: Pipeline,
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
    at = coordinates
    _check_erasable(pipeline)
    ledger = read_ledger(at.store, pipeline)
    found = assess(ledger, None, pipeline, time.time())
    if found.halt is not None:
        raise found.halt
    history = ledger.history
    deletes_draft(history, ledger.table, ())  # refused where there is no entry yet
    since = at.store.log.commits_after(min(versions) - 1)
    standing = standing_deletes(since, history, versions)
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
    trace_open(ledger, accept=DELETES, versions=[*versions])
    committer = Committer(history, at)
    committer.project(found.to_project)
    for portion in portions(accepted):
        draft = deletes_draft(committer.history, ledger.table, portion)
        committer.record(session, committer.plan(Purpose.RESUME, draft))
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


def _shown(standing: StandingDelete, accepted: Deleted) -> AcceptedDelete:
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
