"""The checker's own reading of a Delta log: entries, RESTORE, and whether they form a chain.

It knows the entry format from its description, not from the writer's code: ``userMetadata``
is one JSON object with ``"rivermouth": 1``, in a commit whose ``txn`` has the appId
``rivermouth/<pipeline>`` and the entry's sequence as version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rivermouth.verify.ledger.commits import Commit, Commits
from rivermouth.verify.ledger.entry import LedgerEntry, LedgerRange, Place, parse_entry, shown
from rivermouth.verify.result import Findings, Kind


@dataclass(frozen=True)
class Ledger:
    """What a log says of one pipeline.

    ``standing`` are the entries that the newest version of the table rests on, in order;
    ``recorded`` are all that can be read. ``trimmed``: log clean-up took earlier commits.
    """

    version: int
    standing: tuple[LedgerEntry, ...] = ()
    recorded: tuple[LedgerEntry, ...] = ()
    trimmed: bool = False


@dataclass(frozen=True)
class _Node:
    """An entry and those before it: what stands, as a list that branches at a RESTORE."""

    entry: LedgerEntry
    before: _Node | None


def read_ledger(commits: Commits, pipeline: str, findings: Findings) -> Ledger | None:
    """Read a table's log and check the chain; None where there is no table."""
    versions = commits.versions()
    if not versions:
        return None
    if versions[0] > commits.checkpointed() + 1:
        line = f"the log lacks versions 0 to {versions[0] - 1}, and no checkpoint stands for them"
        findings.add(Kind.FAULT, line)
    walk = _Walk(pipeline, trimmed=versions[0] > 0)
    for before, version in zip([versions[0] - 1, *versions], versions, strict=False):
        if version != before + 1:
            findings.add(Kind.FAULT, f"the log lacks versions {before + 1} to {version - 1}")
        walk.take(version, commits.read(version, findings))
    standing = walk.standing()
    stands = {each.version for each in standing}
    accepted = max((each.sequence for each in walk.recorded if each.accepts), default=0)
    undone = [each.sequence for each in walk.recorded if each.version not in stands]
    for sequence, kind, line in walk.problems:
        if sequence not in undone or sequence > accepted:
            findings.add(kind, line)
    if undone and undone[-1] > accepted:
        first = next(each for each in undone if each > accepted)
        findings.add(Kind.FAULT, f"RESTORE undid the entries {first} to {undone[-1]}")
    return Ledger(versions[-1], standing, tuple(walk.recorded), trimmed=versions[0] > 0)


class _Walk:
    """Goes through the commits in order and checks each entry against what stands."""

    def __init__(self, pipeline: str, *, trimmed: bool) -> None:
        self.recorded: list[LedgerEntry] = []
        self.problems: list[tuple[int, Kind, str]] = []
        """What is wrong, under the sequence of the entry it was found at (0: at none)."""
        self._pipeline = pipeline
        self._app = f"rivermouth/{pipeline}"
        self._sequence = 0
        self._trimmed = trimmed
        self._node: _Node | None = None
        self._marks: list[tuple[int, _Node | None]] = []
        self._commits: set[str] = set()

    def standing(self) -> tuple[LedgerEntry, ...]:
        return tuple(reversed([*_entries(self._node)]))

    def take(self, version: int, commit: Commit) -> None:
        if self._app in commit.txns:
            entry = self._entry(version, commit)
            if entry is not None:
                self._sequence = entry.sequence
                self._check(entry, commit.txns[self._app])
                self._sequence = 0
                self.recorded.append(entry)
                self._node = _Node(entry, None if entry.accepts == "reset" else self._node)
        elif str(commit.info.get("operation")) == "RESTORE":
            self._restore(version, commit.info.get("operationParameters") or {})
        self._marks.append((version, self._node))

    def _entry(self, version: int, commit: Commit) -> LedgerEntry | None:
        try:
            facts = json.loads(commit.info["userMetadata"])
            if facts["rivermouth"] != 1 or facts["pipeline"] != self._pipeline:
                raise ValueError(f"format {facts['rivermouth']}, pipeline {facts['pipeline']}")
            return parse_entry(version, facts)
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            self._fault(f"version {version} has our txn but no entry of ours: {fault!r}")
            return None

    def _check(self, entry: LedgerEntry, txn: int) -> None:
        where = f"entry {entry.sequence} (version {entry.version})"
        newest = self.recorded[-1] if self.recorded else None
        expected = newest.sequence + 1 if newest else 1
        anew = entry.accepts == "reset" and entry.sequence > expected
        if entry.sequence != expected and (newest or not self._trimmed) and not anew:
            self._fault(f"{where}: sequence {expected} was due")
        if txn != entry.sequence:
            self._fault(f"{where}: its txn has version {txn}")
        if entry.commit in self._commits:
            self._fault(f"{where}: commit id {entry.commit} a second time")
        self._commits.add(entry.commit)
        readable = self._node is not None or not self._trimmed
        if entry.accepts == "restore" and readable:
            self._check_restored(where, entry)
        elif entry.accepts is None and readable:
            self._check_ranges(where, entry)

    def _check_restored(self, where: str, entry: LedgerEntry) -> None:
        """It goes on where the restored entry ended, or where a partition was born after it."""
        stood = self._node.entry if self._node else None
        goes_on = dict[Place, int]()
        for each in self.recorded:
            if stood is None or each.sequence > stood.sequence:
                for one in each.ranges:
                    goes_on.setdefault(one.place, one.start)
        goes_on.update(stood.position if stood else {})
        if entry.position != goes_on:
            self._fault(f"{where}: it does not go on where the RESTORE left the table")

    def _check_ranges(self, where: str, entry: LedgerEntry) -> None:
        position = dict(self._node.entry.position) if self._node else {}
        for each in entry.ranges:
            stands = position.get(each.place, each.start)
            if each.start > stands:
                gap = LedgerRange(each.place, stands, each.start)
                self._add(Kind.GAP, f"{where}: gap {gap} before {each}")
            elif each.start < stands:
                self._add(Kind.OVERLAP, f"{where}: {each} starts before {stands}")
            position[each.place] = each.until
        if position != entry.position:
            differing = sorted(
                place
                for place in {*position, *entry.position}
                if position.get(place) != entry.position.get(place)
            )
            names = ", ".join(shown(place) for place in differing)
            self._fault(f"{where}: its position is not where its ranges lead: {names}")

    def _restore(self, version: int, parameters: Mapping[str, Any]) -> None:
        target = parameters.get("version")
        if target in (None, ""):
            self._fault(f"RESTORE at version {version}: cannot tell which entries stand")
            return
        # Before what can be read: none of the entries here stands, older ones may.
        stood = [node for at, node in self._marks if at <= int(str(target))]
        self._node = stood[-1] if stood else None

    def _fault(self, line: str) -> None:
        self._add(Kind.FAULT, line)

    def _add(self, kind: Kind, line: str) -> None:
        self.problems.append((self._sequence, kind, line))


def _entries(node: _Node | None) -> Iterator[LedgerEntry]:
    """The entry of a node and those before it, newest first."""
    while node is not None:
        yield node.entry
        node = node.before
