"""A ledger entry as the checker knows it: from its description, not from the writer's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Place = tuple[str, int]
"""A topic and a partition."""


def shown(place: Place) -> str:
    """``topic-partition``, as people write it."""
    return f"{place[0]}-{place[1]}"


@dataclass(frozen=True)
class LedgerRange:
    """The offsets ``start <= o < until`` of one partition."""

    place: Place
    start: int
    until: int

    def __str__(self) -> str:
        return f"{shown(self.place)}[{self.start},{self.until})"


@dataclass(frozen=True)
class LedgerEntry:
    """An entry where it stands in the log."""

    version: int
    sequence: int
    commit: str
    cluster: str
    topics: Mapping[str, str]
    ranges: tuple[LedgerRange, ...]
    position: Mapping[Place, int]
    lost: tuple[LedgerRange, ...] = ()
    """Ranges that Kafka had deleted before they were read, recorded as such."""
    accepts: str | None = None
    """``restore`` or ``reset``: an operator accepted what undid the entries before it."""
    ends: Mapping[Place, int] = field(default_factory=dict)
    """Where the partitions' logs ended when the entry was planned."""


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


def _offsets(nested: Mapping[str, Mapping[str, Any]]) -> dict[Place, int]:
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def _ranges(listed: Iterable[Any]) -> tuple[LedgerRange, ...]:
    return tuple(
        LedgerRange((topic, int(partition)), int(start), int(until))
        for topic, partition, start, until in listed
    )
