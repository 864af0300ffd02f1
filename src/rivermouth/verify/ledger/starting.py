"""Where a verification begins that does not read everything: after an entry that is in effect.

From the commit of that entry on, the log is read as a log of which clean-up removed all before. So
the rules are those of such a log. What is known of an entry is believed only while the entry is in
effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rivermouth.verify.ledger.chain import entry_of
from rivermouth.verify.ledger.commits import Commits
from rivermouth.verify.ledger.entry import LedgerEntry
from rivermouth.verify.ledger.log import Ledger, read_ledger
from rivermouth.verify.proved import Place
from rivermouth.verify.result import Findings, Unchecked

_NAMED = 5
"""So many commits of others are named."""


@dataclass(frozen=True)
class Void:
    """Why nothing can be built on an entry; ``rolled_back``: on an earlier one it may."""

    reason: str
    rolled_back: bool = False


def read_since(commits: Commits, pipeline: str, place: Place, findings: Findings) -> Ledger | Void:
    """The ledger from the entry at ``place`` on, if that entry is in effect.

    It is, where its commit is in the log, no RESTORE led to before it, nothing took all rows since,
    and no later entry accepts a change of the source. Nothing of the log before it is read.
    """
    version, name = place.version, f"entry {place.sequence}"
    if version not in commits.versions():
        return Void(f"version {version}, which holds {name}, is not in the log any more")
    ledger = read_ledger(commits, pipeline, findings, version)
    if ledger is None or [place_of(each) for each in ledger.recorded[:1]] != [place]:
        return Void(f"version {version} is another commit than that of {name}")
    entries = ledger.effective
    if not entries or place_of(entries[0]) != place:
        return Void(f"{name} was rolled back since", rolled_back=True)
    for each in entries[1:]:
        if each.changes is not None:
            return Void(f"entry {each.sequence} accepts a change of the source")
    for foreign in ledger.foreign:
        if foreign.empties:
            return Void(f"version {foreign.version}, {foreign.operation} by others, took all rows")
    first = replace(entries[0], ranges=(), lost=(), deletes=(), changes=None)
    recorded = (first, *ledger.recorded[1:])
    return replace(ledger, effective=(first, *entries[1:]), recorded=recorded, since=first)


def read_since_time(
    commits: Commits, pipeline: str, time_ms: float, findings: Findings
) -> Ledger | Void:
    """The same from the newest entry that was committed before a time and is in effect."""
    for entry in _entries_before(commits, pipeline, time_ms):
        found = read_since(commits, pipeline, place_of(entry), findings)
        if not (isinstance(found, Void) and found.rolled_back):
            return found
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


def _entries_before(commits: Commits, pipeline: str, time_ms: float) -> Iterator[LedgerEntry]:
    """The entries from before a time, newest first; no more is read than is asked for."""
    quiet = Findings(pipeline)
    for version in reversed(commits.versions()):
        commit = commits.read(version, quiet)
        if f"rivermouth/{pipeline}" not in commit.txns:
            continue
        try:
            entry = entry_of(pipeline, version, commit)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # whoever reads the chain tells of it
        if 0 < entry.committed_ms < time_ms:
            yield entry
