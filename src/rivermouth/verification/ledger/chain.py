"""The chain of one pipeline's entries: which are effective, and whether each follows the last.

It knows the entry format from its description, not from the writer's code: ``userMetadata``
is one JSON object with ``"rivermouth": 1``, its format, in a commit whose ``txn`` has the appId
``rivermouth/<pipeline>`` and the entry's sequence as version.

``read_back`` says from the end of a log what ``Chain.effective`` says, and keeps nothing of the
entries. What a RESTORE rolled back is known before it is reached, so no part is read twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rivermouth.verification.ledger.entry import (
    Commit,
    Commits,
    LedgerEntry,
    LedgerRange,
    Partition,
    is_of_one_topic,
    left_out,
    parse_entry,
    shown,
    written,
)
from rivermouth.verification.ledger.restored import Restorable, restored_version
from rivermouth.verification.result import Findings, Kind

Problem = tuple[Kind, str]


class Chain:
    """Takes the commits of a table in order and checks each entry against the effective one.

    ``recorded`` are all entries so far. ``problems`` are what is wrong, each with the sequence of
    the entry in which it was found (0: in none). ``trimmed``: log clean-up removed commits before
    the first one that is taken.
    """

    def __init__(self, pipeline: str, *, trimmed: bool) -> None:
        self.recorded: list[LedgerEntry] = []
        self.problems: list[tuple[int, Kind, str]] = []
        self._pipeline = pipeline
        self._app = f"rivermouth/{pipeline}"
        self._trimmed = trimmed
        self._standing = Restorable[LedgerEntry]()
        self._emptied = False
        self._commits: set[str] = set()

    def effective(self) -> tuple[LedgerEntry, ...]:
        """The entries on which the newest version of the table rests, in order."""
        return self._standing.items()

    def take(self, version: int, commit: Commit) -> None:
        """Add the next commit of the log."""
        if self._app in commit.txns:
            self._take_entry(version, commit)
        elif str(commit.info.get("operation")) == "RESTORE":
            self._restore(version, commit)
            self._emptied = False
        elif empties(commit):
            self._emptied = True
        # A RESTORE to an emptied table leaves no entry effective. That the entries before it lack
        # their rows, if nobody accepts it, is for the rows to show.
        self._standing.note(version, empty=self._emptied)

    def _take_entry(self, version: int, commit: Commit) -> None:
        try:
            entry = entry_of(self._pipeline, version, commit)
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            line = f"version {version} has the txn of this pipeline, but no entry of it: {fault!r}"
            self.problems.append((0, Kind.FAULT, line))
            return
        where = f"entry {entry.sequence} (version {version})"
        for kind, line in self._check(entry, commit.txns[self._app]):
            self.problems.append((entry.sequence, kind, f"{where}: {line}"))
        self._commits.add(entry.commit)
        self.recorded.append(entry)
        if entry.accepts == "reset":
            self._standing.clear()
        self._standing.add(entry)
        self._emptied = False

    def _check(self, entry: LedgerEntry, txn: int) -> Iterator[Problem]:
        last = self.recorded[-1] if self.recorded else None
        expected = last.sequence + 1 if last else 1
        restarted = entry.accepts == "reset" and entry.sequence > expected
        if entry.sequence != expected and (last or not self._trimmed) and not restarted:
            yield Kind.FAULT, f"expected sequence {expected}"
        if txn != entry.sequence:
            yield Kind.FAULT, f"its txn has version {txn}, expected {entry.sequence}"
        if entry.commit in self._commits:
            yield Kind.FAULT, f"an earlier entry has the same commit id {entry.commit}"
        before = self._standing.newest
        if before is None and self._trimmed:
            return  # what it follows was removed
        if entry.accepts == "restore":
            yield from self._check_restored(entry, before)
        elif entry.accepts is None:
            yield from _check_ranges(entry, before)
            yield from _check_replayed(entry)

    def _check_restored(self, entry: LedgerEntry, before: LedgerEntry | None) -> Iterator[Problem]:
        """Its position is that of the restored entry.

        A partition that was discovered after the restored entry starts again at its first range, if
        that was of the same topic.
        """
        expected = dict[Partition, int]()
        for each in self.recorded:
            if before is None or each.sequence > before.sequence:
                for one in each.ranges:
                    if is_of_one_topic(each, entry, one.partition[0]):
                        expected.setdefault(one.partition, one.start)
        expected.update(before.position if before else {})
        # Where nothing is in effect, and nothing was read of these topics, any start is right.
        if expected and entry.position != expected:
            wrong = _unlike(entry, expected)
            yield Kind.FAULT, f"its position is not that of the restored entry: {wrong}"

    def _restore(self, version: int, commit: Commit) -> None:
        target = restored_version(commit)
        if target is None:  # restored to a point in time, for example
            line = f"RESTORE at version {version}: it does not tell which version it restored"
            self.problems.append((0, Kind.FAULT, line))
        else:  # to before the first readable commit: then no entry here is effective
            self._standing.restore(target)


def empties(commit: Commit) -> bool:
    """Whether a commit of others removes all rows: by TRUNCATE, REPLACE, DELETE or an overwrite."""
    operation = str(commit.info.get("operation")).upper()
    parameters: Mapping[str, Any] = commit.info.get("operationParameters") or {}
    all_rows = str(parameters.get("predicate") or "[]").lower() in ("[]", "true", '["true"]')
    if operation == "WRITE":
        by_key = any(name.startswith("replace") for name in parameters)
        dynamic = str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
        overwrites = parameters.get("mode") == "Overwrite"
        return overwrites and all_rows and not by_key and not dynamic
    if operation == "DELETE":
        return all_rows
    return operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in operation


def entry_of(pipeline: str, version: int, commit: Commit) -> LedgerEntry:
    """The entry that a commit of the pipeline holds.

    Raises KeyError, TypeError, ValueError or AttributeError where it holds none.
    """
    facts = json.loads(commit.info["userMetadata"])
    if facts["rivermouth"] != 1 or facts["pipeline"] != pipeline:
        raise ValueError(f"format {facts['rivermouth']}, pipeline {facts['pipeline']}")
    committed = commit.info.get("inCommitTimestamp") or commit.info.get("timestamp") or 0
    entry = parse_entry(version, facts, int(committed))
    metrics = commit.info.get("operationMetrics") or {}
    return replace(entry, left_out=left_out(facts, metrics), written=written(facts, metrics))


def _check_ranges(entry: LedgerEntry, before: LedgerEntry | None) -> Iterator[Problem]:
    """Its ranges start where the entry before it ended, and its position is where they end.

    A partition that a known topic gained starts at 0: what Kafka deleted before it was read is a
    lost range. Where only some partitions of the
    topic were read on purpose, another one starts where the configuration says.
    """
    position = dict(before.position) if before else {}
    assigned = before.assigned if before else frozenset()
    yield from _apply_changes(entry, position)
    known = {topic for topic, _ in position} - assigned
    for each in entry.ranges:
        added = each.partition[0] in known
        expected = position.get(each.partition, 0 if added else each.start)
        if each.start > expected:
            gap = LedgerRange(each.partition, expected, each.start)
            yield Kind.GAP, f"gap {gap} before {each}"
        elif each.start < expected:
            yield Kind.OVERLAP, f"{each} starts before {expected}, the end of the range before it"
        position[each.partition] = each.until
    if position != entry.position:
        yield Kind.FAULT, f"its position is not the end of its ranges: {_unlike(entry, position)}"


def _check_replayed(entry: LedgerEntry) -> Iterator[Problem]:
    """What it applied once more was read before, up to the position, and it reads nothing."""
    if entry.replayed and any(each.start < each.until for each in entry.ranges):
        yield Kind.FAULT, "it replays records, and covers offsets of its own"
    for each in entry.replayed:
        position = entry.position.get(each.partition)
        if each.until != position or each.start >= each.until:
            yield Kind.FAULT, f"it replays {each}, which does not end at the position {position}"


def _apply_changes(entry: LedgerEntry, position: dict[Partition, int]) -> Iterator[Problem]:
    """Move the position as the accepted changes say, and only as their kinds allow."""
    if entry.changes is None:
        return
    kinds = {*entry.changes.kinds}
    for partition, (was, now) in entry.changes.moved.items():
        stood = position.pop(partition, None)
        if stood != was:
            yield Kind.FAULT, f"it says that {shown(partition)} stood at {was}, it was at {stood}"
        if now is not None:
            position[partition] = now
        if now is None:
            allowed = "partitions" in kinds
        elif entry.changes.is_other(partition[0]):
            allowed = bool({"topic", "cluster"} & kinds)
        else:
            allowed = "truncation" in kinds and was is not None and now < was
        if not allowed:
            what = f"it accepts {', '.join(sorted(kinds))}"
            yield Kind.FAULT, f"{what}, but {shown(partition)} moves from {was} to {now}"


def _unlike(entry: LedgerEntry, expected: Mapping[Partition, int]) -> str:
    """The partitions in which the position of an entry is not the expected one."""
    found = entry.position
    differing = sorted(
        each for each in {*expected, *found} if expected.get(each) != found.get(each)
    )
    return ", ".join(
        f"{shown(each)} at {found.get(each)}, expected {expected.get(each)}" for each in differing
    )


_TELLING = ('"accepts"', '"changes"', '"replayed"')
"""Only an entry whose text holds one of these is parsed: most are long, and say none of it."""


@dataclass(frozen=True)
class Step:
    """One commit; ``effective``: it holds an entry of the pipeline, which is in effect.

    ``changes``: that entry accepts a change of the source. ``replays``: it applied records of
    earlier entries once more.
    """

    version: int
    commit: Commit
    effective: bool = False
    changes: bool = False
    replays: bool = False


def read_back(commits: Commits, pipeline: str, versions: Sequence[int]) -> Iterator[Step]:
    """The commits of ``versions``, newest first, each read once.

    It ends early where no entry before can be in effect. A commit with the ``txn`` of the pipeline
    counts as an entry: whether its text is one is for the reader of the chain to say.
    """
    app, quiet = f"rivermouth/{pipeline}", Findings(pipeline)
    reach = versions[-1] if versions else -1
    restored = False  # whether a RESTORE leads here, and no entry lies between
    for version in reversed(versions):
        commit = commits.read(version, quiet)
        if version > reach:
            yield Step(version, commit)
        elif app in commit.txns:
            facts = _parsed(commit)
            yield Step(version, commit, True, "changes" in facts, "replayed" in facts)
            accepts = facts.get("accepts")
            if isinstance(accepts, dict) and accepts.get("kind") == "reset":
                return
            restored = False
        else:
            yield Step(version, commit)
            if str(commit.info.get("operation")) == "RESTORE":
                target = restored_version(commit)
                restored = target is not None
                reach = reach if target is None else target
            elif restored and empties(commit):
                return


def _parsed(commit: Commit) -> Mapping[str, Any]:
    """What an entry accepts or replays, with all else that it says; empty where it does neither."""
    text = str(commit.info.get("userMetadata"))
    if not any(each in text for each in _TELLING):
        return {}
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
