"""What can be read from a table's log, and what is really true of it. Pure and remembered."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tests.faults.model.effects import Rows, merged
from tests.faults.model.guards import Guards
from tests.faults.model.state import (
    CHANGE,
    DELETE,
    EMPTY,
    ERASURE,
    NOT_TOLD,
    RESET,
    RESTORE,
    RESUME,
    Commit,
    Entry,
    Log,
    Other,
    Topic,
)

REMEMBERED = 1 << 18


MADE_ANEW = 0
"""What an entry accepts that starts over in a table that was made anew: no undoing."""


class Ledger(NamedTuple):
    """The state that the readable part of a log leaves a pipeline in.

    ``newest`` is its last entry, ``stands`` the last that stands; ``known`` is False where
    nobody can tell. ``undone_at`` is the newest version that undid entries (0: all stand),
    ``written_over_at`` the version of an entry that was written over undone ones; ``broken`` says
    that entries do not follow on each other, ``sound`` is the newest version of which it is
    known what stands there.
    """

    newest: Entry | None = None
    stands: Entry | None = None
    known: bool = True
    undone_at: int = 0
    written_over_at: int = 0
    broken: bool = False
    sound: int = 0


@lru_cache(REMEMBERED)
def walk(log: Log, first: int, audit: bool, undo_aware: bool) -> Ledger:
    """Walk the commits from version ``first`` on, as ``chain.Chain`` does.

    Without ``audit`` an entry is taken at its word; without ``undo_aware`` nothing is undone.
    """
    now = Ledger(known=first == 0)
    marks: list[Ledger] = []
    for version, commit in enumerate(log[first:], first):
        if isinstance(commit, Entry):
            judged = _judged_before(now, commit, log, first)
            now = _append(judged, commit, version, first) if audit else Ledger(commit, commit)
        elif undo_aware and undoes(commit):
            now = _follow(now, commit, version, first, marks)
        if now.known:
            now = now._replace(sound=version)
        marks.append(now)
    return now


@lru_cache(REMEMBERED)
def recent(log: Log, first: int, projected: int, guards: Guards) -> int:
    """The version from which on a start reads the log, see ``warehouse.ledger``."""
    back_to, ends_at = len(log), NOT_TOLD
    for version in range(len(log) - 1, first - 1, -1):
        if version <= ends_at:
            return version + 1
        commit = log[version]
        if guards.read_to_restored and isinstance(commit, Other) and commit.operation == RESTORE:
            back_to, ends_at = min(back_to, commit.version), NOT_TOLD
        if not isinstance(commit, Entry) or ends_at != NOT_TOLD:
            continue
        if version <= back_to and commit.sequence <= projected + 1:
            ends_at = commit.base if guards.read_to_base else version - 1
    return first


def _judged_before(now: Ledger, entry: Entry, log: Log, first: int) -> Ledger:
    """Without a RESTORE whose target was cleaned up since, over which a later driver went on."""
    undoing = log[now.undone_at]
    if now.known or not isinstance(undoing, Other) or entry.kind in (RESUME, RESET):
        return now
    is_gone = undoing.operation == RESTORE and undoing.version < first
    if not is_gone or entry.base < max(now.undone_at, now.written_over_at):
        return now
    return now._replace(stands=now.newest, known=True, undone_at=0, written_over_at=0)


def _append(now: Ledger, entry: Entry, version: int, first: int) -> Ledger:
    if entry.kind in (RESUME, RESET):
        wrong = not _accepts(entry, now)
        return Ledger(entry, entry, broken=now.broken or wrong)
    whole = first == 0
    wrong = (now.newest is not None or whole) and not _follows(entry, now.newest)
    written_over_at = now.written_over_at or (version if now.undone_at else 0)
    known, wrong = not written_over_at, wrong or now.broken
    return Ledger(entry, entry, known, now.undone_at, written_over_at, wrong, now.sound)


def _follows(entry: Entry, newest: Entry | None) -> bool:
    """Whether an entry begins where the newest one ends."""
    if newest is None:
        return entry.sequence == 1
    begins = entry.start == newest.until or newest.until is None or entry.kind == CHANGE
    return begins and entry.sequence == newest.sequence + 1


def _accepts(entry: Entry, now: Ledger) -> bool:
    """Whether an entry accepts the undoing that happened, and goes back to what it left.

    A table made anew knows of none, nor may a log that was cleaned up.
    """
    if now.newest is None:
        return entry.accepts in (now.undone_at, MADE_ANEW) or not now.undone_at
    if not now.known or entry.accepts != now.undone_at or entry.sequence <= now.newest.sequence:
        return False
    left = now.stands.until if now.stands else None
    return entry.kind == RESET or left is None or entry.until == left


def _follow(now: Ledger, undoing: Other, version: int, first: int, marks: list[Ledger]) -> Ledger:
    """Follow an undoing: which entry does it leave standing?

    Where the entries before it are no longer readable, nobody can tell.
    """
    left = Ledger()
    if undoing.operation == RESTORE:
        readable = undoing.version >= first
        left = marks[undoing.version - first] if readable else Ledger(known=False)
    if now.newest is None and first == 0:
        return now
    nothing_undone = left.known and left.stands == now.newest and now.newest is not None
    written_over_at = 0 if left.known else now.written_over_at
    undone_at = 0 if nothing_undone else version
    return now._replace(
        stands=left.stands, known=left.known, undone_at=undone_at, written_over_at=written_over_at
    )


def undoes(commit: Commit) -> bool:
    """Whether a commit of others takes rows back as a whole."""
    return isinstance(commit, Other) and commit.operation in (RESTORE, EMPTY)


@lru_cache(REMEMBERED)
def txn(log: Log) -> int:
    """The ``txn`` watermark of the snapshot; 0 where there is none."""
    return max((each.sequence for each in log if isinstance(each, Entry)), default=0)


def projected(offsets: tuple[Entry, ...]) -> int:
    """The newest sequence that the offsets table knows; 0 where it knows none."""
    return max((each.sequence for each in offsets), default=0)


class Truth(NamedTuple):
    """What an all-knowing reader sees: the entries whose rows are in the table as it is.

    ``base`` is where reading once began, or began anew; ``unexplained`` says that entries do
    not follow on each other although nothing was undone between them. ``deletes`` are DELETEs of
    others: how many entries there were before, the offset, and the version.
    """

    line: tuple[Entry, ...] = ()
    base: int | None = None
    unexplained: bool = False
    deletes: tuple[tuple[int, int, int], ...] = ()


@lru_cache(REMEMBERED)
def truth(log: Log) -> Truth:
    """Walk the whole history, also what log clean-up has taken from everybody else."""
    now, newest, undone = Truth(), None, False
    marks: list[Truth] = []
    for version, commit in enumerate(log):
        if isinstance(commit, Entry):
            wrong = not undone and commit.kind not in (RESUME, RESET)
            wrong = wrong and not _follows(commit, newest)
            born = commit.kind == RESET or now.base is None
            base = commit.start if born else now.base
            now = Truth((*now.line, commit), base, now.unexplained or wrong, now.deletes)
            newest, undone = commit, False
        elif undoes(commit):
            left = marks[commit.version] if commit.operation == RESTORE else Truth()
            base = now.base if left.base is None else left.base
            now, undone = Truth(left.line, base, now.unexplained, left.deletes), True
        elif commit.operation == DELETE:
            took = (len(now.line), commit.offset, version)
            now = now._replace(deletes=(*now.deletes, took))
        marks.append(now)
    return now


@lru_cache(REMEMBERED)
def content(log: Log) -> Rows:
    """The rows of the table, as the commits that an effect tells have left them."""
    rows: Rows = ()
    marks: list[Rows] = []
    for commit in log:
        if isinstance(commit, Entry):
            rows = merged(rows, commit.wrote)
        elif undoes(commit):
            rows = marks[commit.version] if commit.operation == RESTORE else ()
        marks.append(rows)
    return rows


def erasures(log: Log) -> list[tuple[Entry, int]]:
    """The entries that accept a DELETE and stand, with its version."""
    line = truth(log).line
    return [(each, each.accepts) for each in line if each.kind == ERASURE]


def is_mixed(log: Log, topic: Topic) -> bool:
    """Whether a batch holds records of another topic, or of a log that was cut once more, than its
    entry names: nobody can see that.
    """
    return any(each.read and is_of_others(each, topic) for each in truth(log).line)


def is_of_others(entry: Entry, topic: Topic) -> bool:
    """Whether the entry's records are others than those of the topic and epoch that it names."""
    if entry.until is None or entry.start == entry.until:
        return False
    cuts = [at for each, at in topic.cuts if each == entry.topic][entry.epoch : entry.cuts]
    return entry.read != entry.topic or min(cuts, default=entry.until) < entry.until


def position_after(log: Log, stands: Entry | None, topic: int) -> int | None:
    """Where to go on once ``stands`` is the last entry that counts; else where it was born."""
    if stands is not None and stands.until is not None:
        return stands.until
    starts = (e.start for e in log if isinstance(e, Entry) and e.topic == topic)
    return next((each for each in starts if each is not None), None)
