"""Replaying a table's log: each commit makes the next ``History`` from the last. Pure.

Checks that entries follow on each other without gap or overlap, and follows RESTORE, REPLACE and
TRUNCATE, which roll commits back but leave their ``txn`` behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rivermouth.errors import Halt, LedgerBroken
from rivermouth.protocol.commits import CommitRecord, Recorded, app_id, entry_of
from rivermouth.protocol.entry import Accepted, Entry
from rivermouth.protocol.history import History, Period, effective_at, rolls_back

_FAULTS_KEPT = 20
"""Of a log full of faults the first tell enough."""


def replay(
    history: History, records: Iterable[CommitRecord]
) -> tuple[History, tuple[Recorded, ...]]:
    """The history after ``records`` (ascending versions, each once), and the entries in them.

    A commit id is looked for twice among ``records`` and the newest entry before them: a replay of
    the whole log compares them all.
    """
    found: list[Recorded] = []
    commits = {history.newest.commit} if history.newest is not None else set[str]()
    for record in records:
        history = _reached(history, record.version)
        try:
            entry = entry_of(record, history.pipeline)
        except LedgerBroken as fault:
            history = _follow(_with(history, fault), record)
            continue
        if entry is None:
            history = _follow(_unless_foreign(history, record), record)
            continue
        if entry.commit in commits:
            where = _where(entry, record)
            history = _fault(history, f"{where}: a commit id twice", "a new id", entry.commit)
        commits.add(entry.commit)
        recorded = Recorded(record.version, record.timestamp_ms, entry)
        history = _append(history, record, recorded)
        found.append(recorded)
    return history, tuple(found)


def _reached(history: History, version: int) -> History:
    if history.version is None:
        begun = replace(history, first=version, version=version)
        # What was in effect at earlier versions nobody can tell.
        return begun if history.recovered is None else _since(begun, version)
    if version != history.version + 1:
        what = "a commit is missing in the log"
        history = _fault(history, what, history.version + 1, version)
    return replace(history, version=version)


def _unless_foreign(history: History, record: CommitRecord) -> History:
    if app_id(history.pipeline) not in record.txns:
        return history
    what = "a commit uses our appId without an entry"
    return _fault(history, what, "an entry", record.version)


def _append(history: History, record: CommitRecord, recorded: Recorded) -> History:
    """The history with an entry of ours added."""
    entry, version = recorded.entry, record.version
    where = _where(entry, record)
    if record.txns.get(app_id(history.pipeline)) != entry.sequence:
        history = _fault(history, f"{where}: txn and sequence differ", entry.sequence, record.txns)
    if history.newest is None:
        history = _begun(history, entry)
    history = _judged_before(history, entry)
    if entry.accepts is not None:
        history = _accepted(history, where, entry, entry.accepts)
    elif history.newest is not None or history.whole:
        history = _checked(history, where, entry)
    written_over_at = history.written_over_at
    if entry.accepts is None and history.rolled_back_by and written_over_at is None:
        written_over_at = version  # the table holds neither what was restored nor what we meant
    return _since(
        replace(
            history,
            recorded=recorded,
            sequence=entry.sequence,
            effective=None if written_over_at is not None else entry.sequence,
            rolled_back_by=() if entry.accepts is not None else history.rolled_back_by,
            written_over_at=written_over_at,
        ),
        version,
    )


def _judged_before(history: History, entry: Entry) -> History:
    """The history without a RESTORE that left all in effect, as far as the entry tells.

    Log clean-up has taken the version that the RESTORE went back to, so nobody can tell any more
    what it left. But the driver of the entry had read it and went on: it had left everything.
    """
    if not history.rolled_back_by or history.effective is not None or entry.accepts is not None:
        return history
    newest = history.rolled_back_by[-1]
    to = str(newest.parameters.get("version"))
    is_gone = newest.operation == "RESTORE" and to.isdigit() and int(to) < (history.first or 0)
    base = -1 if entry.base is None else entry.base
    if not is_gone or base < max(newest.version, history.written_over_at or 0):
        return history
    return replace(history, effective=history.sequence, rolled_back_by=(), written_over_at=None)


def _begun(history: History, first: Entry) -> History:
    """What was in effect before the first readable entry, if it tells, and what others did."""
    if first.accepts is not None:
        return history
    sequence = 0 if history.whole else first.sequence - 1
    early = history.unexplained
    known_until = -1 if first.base is None else first.base
    settled = [each for each in early if each.version <= known_until]
    history = replace(history, sequence=sequence, effective=sequence, unexplained=())
    unknown = bool(early) and sequence > 0
    history = _since(replace(history, effective=None) if unknown else history, history.first or 0)
    history = replace(history, effective=sequence)
    if settled:  # whoever wrote the entry knew of them, and that nothing was rolled back
        history = _since(history, settled[-1].version)
    for record in early[len(settled) :] if sequence else ():
        history = _follow(history, record)
    return history


def _accepted(history: History, where: str, entry: Entry, accepted: Accepted) -> History:
    """An operator accepted a rollback: it is the one found. Its position is for ``verify``.

    A table that was dropped and created again knows neither entries nor a rollback; then the
    sequence goes on from where the offsets table stands.
    """
    if history.newest is None:
        return _settled_by(history, where, entry, accepted)
    if entry.sequence <= history.sequence:
        what = f"{where}: sequence broken"
        history = _fault(history, what, history.sequence + 1, entry.sequence)
    version = history.rolled_back_by[-1].version if history.rolled_back_by else None
    # Where clean-up has taken what tells what is in effect, the driver knew.
    unknown = bool(history.rolled_back_by) and history.effective is None
    found = (version, accepted.standing if unknown else history.effective)
    if (accepted.version, accepted.standing) != found:
        what = f"{where}: accepts what did not happen"
        history = _fault(history, what, f"version {found[0]}, entry {found[1]}", accepted)
    return history


def _settled_by(history: History, where: str, entry: Entry, accepted: Accepted) -> History:
    """The history that begins with an accepting entry, which settles what its driver knew of.

    A rollback between its base and itself is none of that. Where it accepts a table that was
    created again (version 0), there was no entry to roll back.
    """
    versions = [each.version for each in history.unexplained]
    late = [each for each in versions if entry.base is not None and each > entry.base]
    if late and accepted.version:
        what = f"{where}: accepts what did not happen"
        history = _fault(history, what, f"version {late[-1]}", accepted)
    return replace(history, unexplained=())


def _checked(history: History, where: str, entry: Entry) -> History:
    """The history, with a fault where the entry does not follow on the one before it."""
    if entry.sequence != history.sequence + 1:
        what = f"{where}: sequence broken"
        history = _fault(history, what, history.sequence + 1, entry.sequence)
    try:
        before = history.position
        if entry.changes is not None:
            before = entry.changes.applied(before)
        after = before.advance(entry.ranges)
    except ValueError as fault:
        what = f"{where}: ranges do not follow on"
        return _fault(history, what, "no gap, no overlap", fault)
    if after != entry.position:
        what = f"{where}: position is not where the ranges lead"
        return _fault(history, what, after, entry.position)
    return history


def _follow(history: History, record: CommitRecord) -> History:
    """Follow an operation of others that may have rolled entries back."""
    if not rolls_back(record):
        return history
    if history.newest is None and not history.sequence:
        return replace(history, unexplained=(*history.unexplained, record))
    restored = record.operation == "RESTORE"
    to = record.parameters.get("version")
    effective = effective_at(history.periods, to) if restored else 0
    complete = effective == history.sequence
    return _since(
        replace(
            history,
            effective=effective,
            # The first says since when, the newest what is to be accepted.
            rolled_back_by=() if complete else (*history.rolled_back_by[:1], record),
            written_over_at=history.written_over_at if effective is None else None,
        ),
        record.version,
    )


def _since(history: History, version: int) -> History:
    """Note that, from ``version`` on, what is in effect now was in effect."""
    return replace(history, periods=Period(version, history.effective, history.periods))


def _where(entry: Entry, record: CommitRecord) -> str:
    return f"entry {entry.sequence} at version {record.version}"


def _with(history: History, fault: Halt) -> History:
    if len(history.broken) >= _FAULTS_KEPT:
        return history
    return replace(history, broken=(*history.broken, fault))


def _fault(history: History, what: str, expected: object, found: object) -> History:
    broken = LedgerBroken(what, where=history.where, expected=str(expected), found=str(found))
    return _with(history, broken)
