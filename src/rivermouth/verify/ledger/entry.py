"""A ledger entry as the checker knows it: from its description, not from the writer's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Partition = tuple[str, int]
"""One partition: its topic and its number."""


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
    lost: tuple[LedgerRange, ...] = ()
    """Ranges recorded as lost: Kafka deleted them before they were read."""
    accepts: str | None = None
    """``restore`` or ``reset``: an operator accepted the operation that rolled entries back."""
    ends: Mapping[Partition, int] = field(default_factory=dict)
    """The end offset of each partition when the batch was planned."""


def parse_entry(version: int, facts: Mapping[str, Any]) -> LedgerEntry:
    """An entry from its JSON; raises KeyError, TypeError, ValueError or AttributeError."""
    return LedgerEntry(
        version=version,
        sequence=int(facts["sequence"]),
        commit=str(facts["commit"]),
        cluster=str(facts["cluster"]),
        topics=dict(facts["topics"]),
        ranges=_ranges(facts["ranges"]),
        position=_offsets(facts["position"]),
        lost=_ranges(facts.get("lost", ())),
        accepts=facts["accepts"]["kind"] if "accepts" in facts else None,
        ends=_offsets(facts.get("ends", {})),
    )


def _offsets(nested: Mapping[str, Mapping[str, Any]]) -> dict[Partition, int]:
    return {
        (topic, int(number)): int(offset)
        for topic, numbers in nested.items()
        for number, offset in numbers.items()
    }


def _ranges(listed: Iterable[Any]) -> tuple[LedgerRange, ...]:
    return tuple(
        LedgerRange((topic, int(number)), int(start), int(until))
        for topic, number, start, until in listed
    )
