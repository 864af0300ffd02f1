"""What a conformance check reads: the lines of a trace, and the commits of a table's log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.faults.model.state import (
    ALTER,
    ASK,
    BATCH,
    CHANGE,
    DELETE,
    EMPTY,
    ERASURE,
    NOT_TOLD,
    OPTIMIZE,
    RESET,
    RESTORE,
    RESUME,
    Entry,
    Other,
)

Place = tuple[str, int]
"""A topic and a partition."""

STEPS = (
    "open",
    "plan",
    "write",
    "see",
    "send",
    "sent",
    "returned",
    "read_back",
    "project",
    "halt",
    "close",
)


@dataclass(frozen=True)
class Line:
    """One step of one process. ``facts`` are the fields that belong to the step.

    ``number`` says where it stands in the trace, and ``turn`` when it came to pass, among all.
    """

    number: int
    process: str
    pipeline: str
    step: str
    facts: Mapping[str, Any]
    turn: int = 0

    def range_of(self, place: Place) -> tuple[int, int] | None:
        """The range that the step names for a partition."""
        return _range_of(self.facts.get("ranges", ()), place)

    def position_of(self, place: Place) -> int | None:
        """The position that the step names for a partition."""
        return _position_of(self.facts.get("position", {}), place)


PROPERTY, ASKING = "delta.deletedFileRetentionDuration", "interval 1 week 0 days"
"""A table asks for Spark's writer while the property has this value. No other one is told apart."""


@dataclass(frozen=True)
class LogCommit:
    """One commit of the log; ``entry`` is the pipeline's own, as JSON, if it carries one.

    ``as_files``: the driver committed files; else it is Spark's.
    """

    version: int
    operation: str
    parameters: Mapping[str, Any]
    entry: Mapping[str, Any] | None
    as_files: bool = False

    @property
    def id(self) -> object:
        """The id of a commit of ours."""
        return self.entry["commit"] if self.entry else None

    @property
    def applied(self) -> int | None:
        """How many records of the batch took effect; None where the entry does not tell."""
        rows = (self.entry or {}).get("rows")
        return None if rows is None else sum(int(each[0]) for each in rows)

    def as_entry(self, place: Place) -> Entry:
        """A commit of ours in the model's terms, for one partition."""
        entry = self.entry or {}
        until = _position_of(entry.get("position", {}), place)
        start, _ = _range_of(entry.get("ranges", ()), place) or (until, until)
        accepts = entry.get("accepts")
        kind, at = BATCH, 0
        if accepts:
            kind, at = RESUME if accepts["kind"] == "restore" else RESET, int(accepts["version"])
        elif "changes" in entry:
            kind = CHANGE
        elif entry.get("deletes"):
            kind, at = ERASURE, int(entry["deletes"][0]["version"])
        sequence = int(entry["sequence"])
        base = int(entry.get("base", NOT_TOLD))
        return Entry(kind, sequence, start, until, accepts=at, commit=entry["commit"], base=base)

    def as_other(self) -> Other:
        """A commit of somebody else in the model's terms. A RESTORE to a time goes nowhere."""
        if self.operation == "RESTORE":
            version = str(self.parameters.get("version"))
            return Other(RESTORE, int(version) if version.isdigit() else -1)
        if self.operation == "SET TBLPROPERTIES" and PROPERTY in str(self.parameters):
            return Other(ASK if ASKING in str(self.parameters) else ALTER)
        if self._empties():
            return Other(EMPTY)
        return Other(DELETE if self.operation.upper() == "DELETE" else OPTIMIZE)

    def _empties(self) -> bool:
        operation = self.operation.upper()
        predicate = str(self.parameters.get("predicate") or "").lower()
        everything = predicate in ("", "[]", "true", '["true"]')
        if operation == "WRITE":
            dynamic = str(self.parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
            return self.parameters.get("mode") == "Overwrite" and everything and not dynamic
        if operation == "DELETE":
            return everything
        return operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in operation


def read_lines(lines: Iterable[str]) -> tuple[list[Line], list[str]]:
    """The steps of a trace, and what is wrong with those that cannot be read."""
    found: list[Line] = []
    problems: list[str] = []
    for number, text in enumerate(lines, 1):
        try:
            facts = json.loads(text)
            names = facts["process"], facts["pipeline"], facts["step"]
        except (ValueError, TypeError, LookupError):
            problems.append(f"line {number}: not a step: {text[:80].strip()}")
            continue
        if names[2] in STEPS:
            found.append(Line(number, *names, facts, number))
        else:
            problems.append(f"line {number}: there is no step {names[2]!r}")
    return found, problems


def read_commits(commits: Sequence[Mapping[str, Any]], pipeline: str) -> list[LogCommit]:
    """The commits of a log, in order, each with the entry of this pipeline only."""
    read: list[LogCommit] = []
    for each in commits:
        entry = each.get("entry")
        ours = f"rivermouth/{pipeline}" in (each.get("txns") or {})
        ours = ours and entry is not None and entry.get("pipeline", pipeline) == pipeline
        parameters = each.get("parameters") or {}
        version, operation = int(each["version"]), str(each["operation"])
        as_files = bool(each.get("as_files"))
        read.append(LogCommit(version, operation, parameters, entry if ours else None, as_files))
    return read


def by_looks(lines: Sequence[Line], commits: Iterable[LogCommit]) -> list[Line]:
    """The lines of drivers that may work at once, in turns.

    A look at the log and the offsets table is told once it is over, and another driver may have
    told meanwhile what came after it. So its turn is before all that others tell of later versions
    and entries.
    """
    versions, found = {each.id: each.version for each in commits if each.entry}, list[Line]()

    def is_later(line: Line, look: Line) -> bool:
        if line.step == "project":
            sequence = int(line.facts["sequence"])
            return sequence > int(look.facts.get("projected", sequence))
        landed = versions.get(line.facts.get("commit"), -1) if line.step == "returned" else -1
        return max(landed, int(line.facts.get("version", -1))) > int(look.facts["version"])

    for line in lines:
        at = len(found)
        if line.step in ("open", "read_back"):
            own = (n for n in range(at, 0, -1) if found[n - 1].process == line.process)
            at = next((n for n in range(next(own, 0), at) if is_later(found[n], line)), at)
        found.insert(at, line)
    return [replace(each, turn=turn) for turn, each in enumerate(found, 1)]


def places(lines: Iterable[Line], commits: Iterable[LogCommit]) -> list[Place]:
    """Every partition that the trace or the log names."""
    found: set[Place] = set()
    for facts in (*(each.facts for each in lines), *(each.entry or {} for each in commits)):
        found |= {(topic, int(partition)) for topic, partition, *_ in facts.get("ranges", ())}
        for topic, partitions in facts.get("position", {}).items():
            found |= {(topic, int(partition)) for partition in partitions}
    return sorted(found)


def _range_of(ranges: Iterable[Sequence[Any]], place: Place) -> tuple[int, int] | None:
    for topic, partition, start, until in ranges:
        if (topic, int(partition)) == place:
            return int(start), int(until)
    return None


def _position_of(position: Mapping[str, Mapping[str, int]], place: Place) -> int | None:
    topic, partition = place
    return position.get(topic, {}).get(str(partition))
