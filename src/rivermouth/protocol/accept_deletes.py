"""Accepting DELETEs of others: which of them stand, and the entries that say so. Pure.

A run has nothing to decide about rows that were deleted on purpose: it goes on. Only ``verify``
would miss them for ever. So the entry moves no offset; it tells which rows are gone (``deleted``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rivermouth.errors import ResumeRefused
from rivermouth.protocol.commits import APP_PREFIX, CommitRecord, entry_of, readable_entry
from rivermouth.protocol.drafts import still_draft
from rivermouth.protocol.entry import Change, Deleted, Draft
from rivermouth.protocol.history import History, rolls_back
from rivermouth.protocol.offsets import OffsetRange

RUNS_IN_ALL = 100_000
"""Of how many runs of offsets one DELETE is listed; what is beyond is only counted."""


@dataclass(frozen=True)
class DeleteInEffect:
    """A DELETE of others that stands, and its rows that earlier entries have accepted.

    ``replayed`` are ranges that were replayed since: their rows are back.
    """

    commit: CommitRecord
    accepted: tuple[Deleted, ...] = ()
    replayed: tuple[OffsetRange, ...] = ()


InEffect = tuple[CommitRecord, ...]
"""Commits of which the table still has the effect, in order: DELETEs, and entries about them."""


def deletes_in_effect(
    commits: Iterable[CommitRecord], history: History, versions: Sequence[int]
) -> tuple[DeleteInEffect, ...]:
    """The DELETEs at ``versions``, in order. ``commits`` are all from the first of them on.

    Raises ResumeRefused where one of them is not in the log, is no DELETE of some rows by others,
    or was rolled back since; and LedgerBroken.
    """
    wanted = {*versions}
    newest = -1 if history.version is None else history.version
    if max(wanted) > newest:  # a catalog cannot be asked for commits after what is not there
        raise _refused(history, max(wanted), "a commit in the log", f"version {newest} at its end")
    since: list[tuple[int, InEffect]] = [(-1, ())]
    for record in commits:
        if record.version in wanted:
            _check(record, history)
            wanted -= {record.version}
        now = _after(since, record, history.pipeline, {*versions})
        if now is not since[-1][1]:
            since.append((record.version, now))
    if wanted:
        raise _refused(history, min(wanted), "a commit in the log", "none; clean-up may have it")
    found = {each.version: each for each in since[-1][1]}
    gone = sorted({*versions} - {*found})
    if gone:
        raise _refused(history, gone[0], "a DELETE that stands", "that it was rolled back since")
    entries = [(each.version, entry_of(each, history.pipeline)) for each in since[-1][1]]
    return tuple(
        DeleteInEffect(
            found[each],
            tuple(one for _, e in entries if e for one in e.deletes if one.version == each),
            tuple(one for at, e in entries if e and at > each for one in e.replayed),
        )
        for each in sorted({*versions})
    )


def _after(
    since: Sequence[tuple[int, InEffect]], record: CommitRecord, pipeline: str, wanted: set[int]
) -> InEffect:
    """What is in effect after a commit; ``since`` tells it of those before, by version.

    What a RESTORE leaves that tells no version, nobody knows.
    """
    now = since[-1][1]
    if rolls_back(record):
        to = str(record.parameters.get("version"))
        if record.operation != "RESTORE" or not to.isdigit():
            return ()
        return next(each for version, each in reversed(since) if version <= int(to))
    if record.version in wanted:
        # Its text may be long, and is not needed any more.
        return (*now, replace(record, user_metadata=None))
    entry = entry_of(record, pipeline)
    tells = entry is not None and (entry.deletes or entry.replayed)
    return (*now, record) if tells else now


def _check(record: CommitRecord, history: History) -> None:
    """Raise ResumeRefused unless the commit is a DELETE of some rows by somebody else."""
    wanted = "a DELETE of others with a predicate"
    own = any(app.startswith(APP_PREFIX) for app in record.txns)
    if record.operation.upper() != "DELETE" or own:
        own_words = " with an entry" if own else ""
        raise _refused(history, record.version, wanted, f"{record.operation}{own_words}")
    if rolls_back(record):
        remedy = f"rivermouth resume CONFIG {history.pipeline} --accept reset"
        found = "a DELETE of all rows, which is a reset"
        raise _refused(history, record.version, wanted, found, remedy)


def deleted(
    standing: DeleteInEffect,
    history: History,
    rows: Sequence[OffsetRange] | None,
) -> Deleted:
    """What is left to accept of a DELETE. ``rows`` are all that it took, of any pipeline, in order;
    None: nobody can tell them any more.

    Raises ResumeRefused where nothing is left, or where not even the number of rows is known.
    """
    commit = standing.commit
    if any(each.unlisted for each in standing.accepted):
        raise _accepted_already(history, commit.version)
    if rows is None and standing.replayed:
        found = "that a replay since may have brought them back"
        raise _refused(history, commit.version, "its rows, which VACUUM has taken", found)
    if rows is None:
        if not commit.deleted_rows:
            raise _refused(
                history,
                commit.version,
                "its rows, or their number",
                "that VACUUM has taken the files, and the commit tells no number",
            )
        # A process that was killed may have listed a part of them while the files were there.
        unlisted = commit.deleted_rows - sum(each.count for each in standing.accepted)
        if unlisted > 0:
            return Deleted(commit.version, unlisted=unlisted)
        raise _accepted_already(history, commit.version)
    ours = [each for one in rows for each in _ours(one, history)]
    if not ours:
        found = "that it took no row of this pipeline"
        raise _refused(history, commit.version, "a DELETE of its rows", found)
    ours = [one for each in ours for one in each.without(standing.replayed)]
    if not ours:
        found = "that a replay since brought its rows back"
        raise _refused(history, commit.version, "a DELETE whose rows are gone", found)
    known = {one for each in standing.accepted for one in each.rows}
    left = tuple(each for each in ours if each not in known)
    if not left:
        raise _accepted_already(history, commit.version)
    return Deleted(commit.version, left)


def _ours(rows: OffsetRange, history: History) -> Iterator[OffsetRange]:
    """The part that the pipeline has read; none of it may be.

    Where the source was changed, and that accepted, rows of former records may lie beyond the
    position.
    """
    newest = history.newest
    if newest is not None and rows.topic in newest.topics and shared_offsets(history):
        yield rows
        return
    until = min(rows.until_offset, history.position.get(rows.topic_partition) or 0)
    if rows.from_offset < until:
        yield OffsetRange(rows.topic_partition, rows.from_offset, until)


def shared_offsets(history: History) -> bool:
    """Whether an offset may be that of two rows: a change was accepted by which offsets mean other
    records than before.
    """
    accepted = () if history.newest is None else history.newest.accepted
    return any(kind != Change.IDENTITY.value for kind, _ in accepted)


def parts_of_records(commits: Iterable[CommitRecord], pipeline: str) -> bool:
    """Whether a DELETE may have taken some rows of a record and left others.

    ``commits`` are those of the whole log: a row stays as its own entry wrote it, also where later
    entries make one row of each record.
    """
    # What is broken before the end of the log stops no run either.
    entries = (readable_entry(each, pipeline) for each in commits)
    return any(entry is not None and entry.explode for entry in entries)


def deletes_draft(history: History, table: str, deletes: tuple[Deleted, ...]) -> Draft:
    """The entry that accepts ``deletes`` and moves no offset. Nothing of Kafka is needed for it.

    Raises ResumeRefused where there is no entry yet.
    """
    newest = history.newest
    if newest is None:
        raise ResumeRefused(
            "there is no entry that wrote the deleted rows", where=history.where, found="none"
        )
    return replace(still_draft(history, newest, table), deletes=deletes)


def _accepted_already(history: History, version: int) -> ResumeRefused:
    return _refused(history, version, "a DELETE to accept", "that it is accepted already")


def _refused(
    history: History, version: int, expected: str, found: str, remedy: str = ""
) -> ResumeRefused:
    return ResumeRefused(
        f"version {version} cannot be accepted",
        where=history.where,
        expected=expected,
        found=found,
        remedy=remedy or "Name the versions of DELETEs: DESCRIBE HISTORY lists them",
    )
