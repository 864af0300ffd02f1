"""The checker's own reading of a Delta log: the ledger of one pipeline, checked for gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.verify.ledger.chain import Chain, empties
from rivermouth.verify.ledger.commits import Commits
from rivermouth.verify.ledger.deletions import StandingDeletes
from rivermouth.verify.ledger.entry import LedgerEntry
from rivermouth.verify.ledger.others import Foreign
from rivermouth.verify.result import Findings, Kind

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
    deletes = StandingDeletes()
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
