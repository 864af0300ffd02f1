"""Where a verification begins that does not read everything: after an entry that is in effect.

From the commit of that entry on, the log is read as a log of which clean-up removed all before. So
the rules are those of such a log. What is known of an entry is believed only while the entry is in
effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rivermouth.verify.ledger.backward import read_back
from rivermouth.verify.ledger.chain import entry_of
from rivermouth.verify.ledger.commits import Commit, Commits
from rivermouth.verify.ledger.entry import LedgerEntry
from rivermouth.verify.ledger.log import Ledger, read_ledger
from rivermouth.verify.ledger.others import Foreign
from rivermouth.verify.proved import Place
from rivermouth.verify.result import Findings, Unchecked

_NAMED = 5
"""So many commits of others are named."""


@dataclass(frozen=True)
class Void:
    """Why nothing can be built on an entry."""

    reason: str


def read_since(commits: Commits, pipeline: str, place: Place, findings: Findings) -> Ledger | Void:
    """The ledger from the entry at ``place`` on, if that entry is in effect.

    It is, where its commit is in the log, no RESTORE led to before it, nothing took all rows since,
    and no later entry accepts a change of the source or replays records. Nothing of the log before
    it is read.
    """
    if place.version not in commits.versions():
        return _gone(place)
    ledger = read_ledger(commits, pipeline, findings, place.version)
    if ledger is None or [place_of(each) for each in ledger.recorded[:1]] != [place]:
        return _another(place)
    entries = ledger.effective
    if not entries or place_of(entries[0]) != place:
        return _rolled_back(place)
    for each in entries[1:]:
        if each.changes is not None:
            return _changed(each.sequence)
        if each.replayed:
            return _replayed(each.sequence)
    for foreign in ledger.foreign:
        if foreign.empties:
            return _emptied(foreign)
    first = replace(entries[0], ranges=(), lost=(), deletes=(), replayed=(), changes=None)
    recorded = (first, *ledger.recorded[1:])
    return replace(ledger, effective=(first, *entries[1:]), recorded=recorded, since=first)


def void_since(
    commits: Commits, pipeline: str, place: Place, versions: Sequence[int]
) -> Void | None:
    """Why ``read_since`` would read nothing; None where it would read the ledger.

    ``versions`` are those of ``commits``. Nothing of the later entries is kept or checked.
    """
    if place.version not in versions:
        return _gone(place)
    commit = commits.read(place.version, Findings(pipeline))
    first = _entry_in(pipeline, place.version, commit)
    if first is None or place_of(first) != place:
        return _another(place)
    void: Void | None = None
    emptied: Foreign | None = None
    for step in read_back(commits, pipeline, [each for each in versions if each >= place.version]):
        if step.version == place.version and step.effective:
            break
        if step.changes or step.replays:
            sequence = step.commit.txns[f"rivermouth/{pipeline}"]
            void = _changed(sequence) if step.changes else _replayed(sequence)
        foreign = Foreign.of(step.version, step.commit)
        emptied = foreign if foreign is not None and foreign.empties else emptied
    else:
        return _rolled_back(place)
    if void is not None:
        return void
    return None if emptied is None else _emptied(emptied)


def read_since_time(
    commits: Commits, pipeline: str, time_ms: float, findings: Findings
) -> Ledger | Void:
    """The same from the newest entry that was committed before a time and is in effect.

    The log is read back to that entry, and from there on once more.
    """
    for step in read_back(commits, pipeline, commits.versions()):
        # An entry whose text cannot be read is passed over: whoever reads the chain tells of it.
        entry = _entry_in(pipeline, step.version, step.commit) if step.effective else None
        if entry is not None and 0 < entry.committed_ms < time_ms:
            return read_since(commits, pipeline, place_of(entry), findings)
    return Void("the log holds no entry from before that time")


def place_of(entry: LedgerEntry) -> Place:
    """Where an entry is."""
    return Place(entry.sequence, entry.commit, entry.version)


def note_foreign(ledger: Ledger, findings: Findings) -> None:
    """Say which commits of others may have changed rows of entries that are not read again.

    A DELETE that an entry accepts is none of them.
    """
    if ledger.since is None:
        return
    accepted = {each.version for entry in ledger.effective for each in entry.deletes}
    found = [each for each in ledger.foreign if each.version not in accepted]
    named = [f"{each.operation} at version {each.version}" for each in found[:_NAMED]]
    more = [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    if found:
        line = f"whether others changed rows of entries up to {ledger.since.sequence}: by "
        findings.leave(Unchecked.FOREIGN, line + ", ".join([*named, *more]), len(found))


def _entry_in(pipeline: str, version: int, commit: Commit) -> LedgerEntry | None:
    """The entry that a commit holds; None where it holds none."""
    try:
        return entry_of(pipeline, version, commit)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _gone(place: Place) -> Void:
    held = f"version {place.version}, which holds entry {place.sequence}"
    return Void(f"{held}, is not in the log any more")


def _another(place: Place) -> Void:
    return Void(f"version {place.version} is another commit than that of entry {place.sequence}")


def _rolled_back(place: Place) -> Void:
    return Void(f"entry {place.sequence} was rolled back since")


def _changed(sequence: int) -> Void:
    return Void(f"entry {sequence} accepts a change of the source")


def _replayed(sequence: int) -> Void:
    return Void(f"entry {sequence} replays records of earlier entries")


def _emptied(foreign: Foreign) -> Void:
    return Void(f"version {foreign.version}, {foreign.operation} by others, took all rows")
