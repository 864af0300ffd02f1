"""The checker's own reading of a Delta log: all of it, or what came after an entry in effect.

From the commit of that entry on, the log is read as a log of which clean-up removed all before. So
the rules are those of such a log. What is known of an entry is believed only while the entry is in
effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rivermouth.verification.ledger.chain import Chain, empties, entry_of, read_back
from rivermouth.verification.ledger.entry import Commit, Commits, LedgerEntry
from rivermouth.verification.ledger.restored import DeletesOfOthers
from rivermouth.verification.proved import Place
from rivermouth.verification.result import Findings, Kind, Unchecked

_HARMLESS = (
    "ADD COLUMN",
    "ADD CONSTRAINT",
    "ADD FEATURE",
    "ANALYZE",
    "CHANGE COLUMN",
    "CLUSTER BY",
    "COMPUTE STATS",
    "DROP CONSTRAINT",
    "OPTIMIZE",
    "RESTORE",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "UPGRADE PROTOCOL",
    "VACUUM",
)
"""Operations that change no row; any other one may. A RESTORE is followed by the chain."""
_OF_SOFT_DELETES = re.compile(r"\W*_tombstone(#\d+)?\W*")
"""The predicate of the DELETE by which a pipeline removes the rows that it marked."""


@dataclass(frozen=True)
class Foreign:
    """A commit of others that may have changed rows; ``empties``: it removed all of them."""

    version: int
    operation: str
    empties: bool

    @staticmethod
    def of(version: int, commit: Commit) -> Foreign | None:
        """What a commit is; None for one of a pipeline, and for one that changes no row."""
        if any(app.startswith("rivermouth/") for app in commit.txns):
            return None
        operation = str(commit.info.get("operation"))
        parameters = commit.info.get("operationParameters") or {}
        ours = _OF_SOFT_DELETES.fullmatch(str(parameters.get("predicate")))
        if operation.upper().startswith(_HARMLESS) or (operation == "DELETE" and ours):
            return None
        return Foreign(version, operation, empties(commit))


_APP = "rivermouth/"


@dataclass(frozen=True)
class Ledger:
    """What a log says of one pipeline.

    ``effective`` are the entries on which the newest version of the table rests, in order;
    ``recorded`` are all that can be read, those that were rolled back among them. ``trimmed``:
    log clean-up removed earlier commits. ``neighbours`` are the effective entries of every other
    pipeline that wrote the table, by its name, whether it is still configured or not. ``first`` is
    the version of the first commit that was read. ``deletes`` are the DELETEs of others that
    stand, by version, each with its number of rows where its commit tells it. ``since``: the
    verification begins after this entry, which is the first of ``effective``, without its ranges.
    ``foreign`` are the commits of others that may have changed rows, after the first one read.
    """

    version: int
    effective: tuple[LedgerEntry, ...] = ()
    recorded: tuple[LedgerEntry, ...] = ()
    trimmed: bool = False
    neighbours: Mapping[str, tuple[LedgerEntry, ...]] = field(default_factory=dict)
    first: int = 0
    deletes: Mapping[int, int | None] = field(default_factory=dict)
    since: LedgerEntry | None = None
    foreign: tuple[Foreign, ...] = ()

    @property
    def covered(self) -> tuple[LedgerEntry, ...]:
        """The effective entries whose records are verified."""
        return self.effective if self.since is None else self.effective[1:]


def read_ledger(
    commits: Commits, pipeline: str, findings: Findings, start: int | None = None
) -> Ledger | None:
    """Read a table's log and check the chain of entries; None where there is no table.

    What is wrong goes into ``findings``: missing commits, entries that do not follow each other,
    and a RESTORE that no later entry accepts. Commits before the version ``start`` are not read:
    then the ledger is that of a log of which clean-up removed them.
    """
    versions = [each for each in commits.versions() if start is None or each >= start]
    if not versions:
        return None
    trimmed = start is not None or versions[0] > 0
    if start is None and versions[0] > commits.checkpointed() + 1:
        line = f"the log lacks versions 0 to {versions[0] - 1}, and no checkpoint covers them"
        findings.add(Kind.FAULT, line)
    chain = Chain(pipeline, trimmed=trimmed)
    others: dict[str, Chain] = {}
    deletes = DeletesOfOthers()
    foreign: list[Foreign] = []
    for before, version in zip([versions[0] - 1, *versions], versions, strict=False):
        if version != before + 1:
            findings.add(Kind.FAULT, f"the log lacks versions {before + 1} to {version - 1}")
        commit = commits.read(version, findings)
        for app in commit.txns:
            name = app.removeprefix(_APP)
            if app.startswith(_APP) and name != pipeline:
                # What is wrong with its entries is for its own verification to say.
                others.setdefault(name, Chain(name, trimmed=True))
        for each in (chain, *others.values()):
            each.take(version, commit)
        deletes.take(version, commit, empties=empties(commit))
        other = Foreign.of(version, commit)
        foreign += [other] if other is not None and version > versions[0] else []
    _report(chain, findings)
    neighbours = {name: each.effective() for name, each in others.items()}
    return Ledger(
        version=versions[-1],
        effective=chain.effective(),
        recorded=tuple(chain.recorded),
        trimmed=trimmed,
        neighbours=neighbours,
        first=versions[0],
        deletes=deletes.rows(),
        foreign=tuple(foreign),
    )


def _report(chain: Chain, findings: Findings) -> None:
    """The problems of entries that count: a rolled-back entry, once accepted, does not."""
    effective = {each.version for each in chain.effective()}
    accepted = max((each.sequence for each in chain.recorded if each.accepts), default=0)
    rolled_back = [each.sequence for each in chain.recorded if each.version not in effective]
    for sequence, kind, line in chain.problems:
        if sequence not in rolled_back or sequence > accepted:
            findings.add(kind, line)
    if rolled_back and rolled_back[-1] > accepted:
        first = next(each for each in rolled_back if each > accepted)
        entries = f"the entries {first} to {rolled_back[-1]}"
        findings.add(Kind.FAULT, f"a RESTORE rolled back {entries}; no entry accepts it")


_NAMED = 5
"""So many commits of others are named."""


def read_since(commits: Commits, pipeline: str, place: Place, findings: Findings) -> Ledger | str:
    """The ledger from the entry at ``place`` on; or why that entry is not in effect.

    It is in effect where its commit is in the log, no RESTORE led to before it, nothing took all
    rows since, and no later entry accepts a change of the source or replays records. Nothing of the
    log before it is read.
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
) -> str | None:
    """Why ``read_since`` would read nothing; None where it would read the ledger.

    ``versions`` are those of ``commits``. Nothing of the later entries is kept or checked.
    """
    if place.version not in versions:
        return _gone(place)
    commit = commits.read(place.version, Findings(pipeline))
    first = _entry_in(pipeline, place.version, commit)
    if first is None or place_of(first) != place:
        return _another(place)
    void: str | None = None
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
) -> Ledger | str:
    """The same from the newest entry that was committed before a time and is in effect.

    The log is read back to that entry, and from there on once more.
    """
    for step in read_back(commits, pipeline, commits.versions()):
        # An entry whose text cannot be read is passed over: whoever reads the chain tells of it.
        entry = _entry_in(pipeline, step.version, step.commit) if step.effective else None
        if entry is not None and 0 < entry.committed_ms < time_ms:
            return read_since(commits, pipeline, place_of(entry), findings)
    return "the log holds no entry from before that time"


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


def _gone(place: Place) -> str:
    commit = f"version {place.version}, which holds entry {place.sequence}"
    return f"{commit}, is not in the log any more"


def _another(place: Place) -> str:
    return f"version {place.version} is another commit than that of entry {place.sequence}"


def _rolled_back(place: Place) -> str:
    return f"entry {place.sequence} was rolled back since"


def _changed(sequence: int) -> str:
    return f"entry {sequence} accepts a change of the source"


def _replayed(sequence: int) -> str:
    return f"entry {sequence} replays records of earlier entries"


def _emptied(foreign: Foreign) -> str:
    return f"version {foreign.version}, {foreign.operation} by others, took all rows"
