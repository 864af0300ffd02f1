"""Commits and ledger entries as the checker knows them: from their description alone.

In an entry ``"deletes": [{"version": 12, "rows": {"orders": {"0": [5, 2, 7, 1]}}}]`` names the rows
by the offsets of their records: the first, then in turn how many are deleted and how many not.
``"unlisted": 3`` in place of the rows: the DELETE took at most so many; nobody can tell which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rivermouth.verification.result import Findings


@dataclass(frozen=True)
class Commit:
    """One commit: Delta's ``commitInfo``, and its ``txn`` actions as appId to version."""

    info: Mapping[str, Any]
    txns: Mapping[str, int]


class Commits(Protocol):
    """The log of one table."""

    def versions(self) -> list[int]:
        """The versions that can be read, ascending; none where there is no table."""

    def checkpointed(self) -> int:
        """The newest version that has a checkpoint; -1: there is none."""

    def read(self, version: int, findings: Findings) -> Commit:
        """One commit. Adds a finding for what cannot be read of it."""

    def has(self, version: int) -> bool:
        """Whether this commit exists now. It may be newer than the last of ``versions``."""


@dataclass(frozen=True)
class Deletion:
    """What an entry says of the DELETE at ``version``: ``(start, until)`` by partition, in order;
    or, as ``unlisted``, how many rows it took at most.
    """

    version: int
    rows: Mapping[Partition, Sequence[tuple[int, int]]] = field(default_factory=dict)
    unlisted: int = 0

    @property
    def count(self) -> int:
        """How many rows it took, at most where they are not listed."""
        runs = (run for each in self.rows.values() for run in each)
        return sum(until - start for start, until in runs) + self.unlisted


def parse_deletion(facts: Mapping[str, Any]) -> Deletion:
    """From its JSON; raises KeyError, TypeError, ValueError or AttributeError."""
    rows = {
        (topic, int(number)): tuple(_runs(numbers))
        for topic, partitions in facts.get("rows", {}).items()
        for number, numbers in partitions.items()
    }
    return Deletion(int(facts["version"]), rows, int(facts.get("unlisted", 0)))


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    at = 0
    for skipped, taken in zip(numbers[::2], numbers[1::2], strict=True):
        if skipped < 0 or taken < 1:
            raise ValueError(f"no run of offsets: {skipped}, {taken}")
        yield at + skipped, at + skipped + taken
        at += skipped + taken


Partition = tuple[str, int]
"""One partition: its topic and its number."""


NOT_TOLD = {"", "AAAAAAAAAAAAAAAAAAAAAA"}
"""What a broker without topic ids tells: none, or the UUID that is zero."""


def differ(one: str, other: str) -> bool:
    """Whether two ids that were told are those of two topics."""
    return one != other and not NOT_TOLD & {one, other}


def shown(partition: Partition) -> str:
    """``topic-number``, as people write it."""
    return f"{partition[0]}-{partition[1]}"


@dataclass(frozen=True)
class LedgerRange:
    """The offsets ``start <= o < until`` of one partition."""

    partition: Partition
    start: int
    until: int

    def __str__(self) -> str:
        return f"{shown(self.partition)}[{self.start},{self.until})"


@dataclass(frozen=True)
class LedgerChanges:
    """What an operator accepted as changed.

    ``other`` are topics that are others than before; ``cluster``: all are. ``moved`` tells where a
    partition stood and where it goes; None: it was not known, or it is gone.
    """

    kinds: tuple[str, ...]
    cluster: bool
    other: frozenset[str]
    moved: Mapping[Partition, tuple[int | None, int | None]]

    def is_other(self, topic: str) -> bool:
        """Whether the topic is another one than before."""
        return self.cluster or topic in self.other

    def renewed(self) -> dict[Partition, int]:
        """The first offset of each partition that means another record than before."""
        cut = {each: now or 0 for each, (_, now) in self.moved.items()}
        return {each: 0 if self.is_other(each[0]) else now for each, now in cut.items()}


@dataclass(frozen=True)
class LedgerEntry:
    """An entry, and the version of the table whose commit holds it."""

    version: int
    sequence: int
    commit: str
    cluster: str
    topics: Mapping[str, str]
    """The id of each topic, by its name."""
    ranges: tuple[LedgerRange, ...]
    position: Mapping[Partition, int]
    """The next offset of each partition after this entry."""
    columns: tuple[str, ...]
    """The names of the columns that the records were decoded with."""
    lost: tuple[LedgerRange, ...] = ()
    """Ranges recorded as lost: Kafka deleted them before they were read."""
    accepts: str | None = None
    """``restore`` or ``reset``: an operator accepted the operation that rolled entries back."""
    ends: Mapping[Partition, int] = field(default_factory=dict)
    """The end offset of each partition when the batch was planned."""
    decoder: Mapping[str, Any] = field(default_factory=dict)
    """The version of what decoded the records, if it is not 1, and its settings."""
    metadata: tuple[str, ...] = ()
    """What ``_kafka`` tells of each record beside its place and time."""
    deletes: tuple[Deletion, ...] = ()
    """Rows that an operator accepted as deleted on purpose."""
    replayed: tuple[LedgerRange, ...] = ()
    """Ranges of earlier entries whose records were applied once more."""
    changes: LedgerChanges | None = None
    """What an operator accepted as changed since the entry before it."""
    accepted: tuple[tuple[str, int], ...] = ()
    """The kinds of changes that were accepted so far, each with the sequence of its entry."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The settings that gave the pipeline its identity."""
    transform: str = ""
    """What made the rows of the records: a function, or ``select``; empty: nothing did."""
    explode: bool = False
    """Whether a record may have any number of rows."""
    left_out: int | None = 0
    """How many records took effect by having no row; None: the log does not tell."""
    written: int | None = None
    """How many rows its commit wrote; None: the log does not tell."""
    assigned: frozenset[str] = frozenset()
    """The topics of which the pipeline reads only some partitions, on purpose."""
    committed_ms: int = 0
    """When it was committed, in ms since 1970; 0: the log does not tell."""


def is_of_one_topic(one: LedgerEntry, other: LedgerEntry, topic: str) -> bool:
    """Whether two entries mean the same topic by a name, as far as they tell."""
    ids = one.topics.get(topic, ""), other.topics.get(topic, "")
    return one.cluster == other.cluster and not differ(*ids)


def parse_entry(version: int, facts: Mapping[str, Any], committed_ms: int = 0) -> LedgerEntry:
    """An entry from its JSON; raises KeyError, TypeError, ValueError or AttributeError."""
    explode = facts.get("explode") is True
    if explode and not facts.get("counted", True):
        raise ValueError("it does not count its records, and a record may have several rows")
    return LedgerEntry(
        version=version,
        sequence=int(facts["sequence"]),
        commit=str(facts["commit"]),
        cluster=str(facts["cluster"]),
        lost=_ranges(facts.get("lost", ())),
        accepts=facts["accepts"]["kind"] if "accepts" in facts else None,
        columns=tuple(str(name) for name, _ in facts["columns"]),
        decoder=dict(facts.get("decoder", {})),
        metadata=tuple(str(each) for each in facts.get("metadata", ())),
        deletes=tuple(parse_deletion(each) for each in facts.get("deletes", ())),
        replayed=_ranges(facts.get("replayed", ())),
        changes=_changes(facts["changes"]) if "changes" in facts else None,
        accepted=tuple((str(kind), int(at)) for kind, at in facts.get("accepted", ())),
        config=dict(facts["config"]),
        transform=str(facts.get("transform", "")),
        explode=explode,
        committed_ms=committed_ms,
        **_of_topics(facts["topics"]),
    )


def left_out(facts: Mapping[str, Any], metrics: Mapping[str, Any]) -> int | None:
    """See ``LedgerEntry``: by the JSON of the entry, and the ``operationMetrics`` of its commit.

    An entry without counts has a row for each record that took effect. Where a record may have
    several rows, nobody can tell. The commit of a pipeline that sends writes no row, so its entry
    tells the number itself. Raises what ``parse_entry`` raises.
    """
    if "delivery" in facts["config"]:
        return int(facts.get("left_out", 0))
    if "transform" not in facts or not facts.get("counted", True):
        return 0
    if facts.get("explode") is True:
        return None
    rows = written(facts, metrics)
    return None if rows is None else _applied(facts) - rows


def written(facts: Mapping[str, Any], metrics: Mapping[str, Any]) -> int | None:
    """See ``LedgerEntry``: by the JSON of the entry, and the ``operationMetrics`` of its commit.

    Where no record took effect, no row was written. Raises what ``parse_entry`` raises.
    """
    rows = metrics.get("numOutputRows")
    if rows is None and facts.get("counted", True) and "transform" in facts:
        return None if _applied(facts) else 0
    return None if rows is None else int(rows)


def _applied(facts: Mapping[str, Any]) -> int:
    """The records of an entry that took effect; it has counts."""
    moved = [its["ranges"] for its in facts["topics"].values() if "ranges" in its]
    parts = [_numbered("", each["partitions"]) for each in moved]
    pairs = zip(moved, parts, strict=True)
    return sum(sum(_spread(each["applied"], len(its))) for each, its in pairs)


def _changes(facts: Mapping[str, Any]) -> LedgerChanges:
    moved = {(topic, int(n)): (was, now) for topic, n, was, now in facts.get("moved", ())}
    kinds = tuple(str(each) for each in facts["kinds"])
    return LedgerChanges(kinds, "cluster" in kinds, frozenset(facts.get("topics", {})), moved)


def _of_topics(topics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What an entry says of its topics: numbers in the order of the partitions."""
    position, ends = dict[Partition, int](), dict[Partition, int]()
    ranges: list[LedgerRange] = []
    for topic, facts in topics.items():
        listed = facts.get("position", [])
        places = _numbered(topic, facts.get("partitions", []))
        positions = {each: at for each, at in zip(places, listed, strict=True) if at is not None}
        position |= positions
        beyond = zip(places, _spread(facts.get("ends"), len(places)), strict=True)
        ends |= {each: positions.get(each, 0) + by for each, by in beyond if by is not None}
        moved = facts.get("ranges", {"partitions": [], "spans": []})
        parts = _numbered(topic, moved["partitions"])
        for each, span in zip(parts, _spread(moved["spans"], len(parts)), strict=True):
            ranges.append(LedgerRange(each, positions[each] - span, positions[each]))
    ids = {topic: str(facts["id"]) for topic, facts in topics.items() if "id" in facts}
    found = {"topics": ids, "ranges": tuple(ranges), "position": position, "ends": ends}
    return {**found, "assigned": frozenset(each for each in topics if topics[each].get("assigned"))}


def _numbered(topic: str, runs: Sequence[int]) -> list[Partition]:
    """Partitions from the first and the last of each run."""
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [(topic, number) for first, last in pairs for number in range(first, last + 1)]


def _spread(numbers: Any, count: int) -> list[Any]:
    """A list of numbers; one number alone stands for ``count`` equal ones."""
    return numbers if isinstance(numbers, list) else [numbers] * count


def _ranges(listed: Iterable[Any]) -> tuple[LedgerRange, ...]:
    return tuple(
        LedgerRange((topic, int(number)), int(start), int(until))
        for topic, number, start, until in listed
    )
