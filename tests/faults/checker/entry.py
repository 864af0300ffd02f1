"""A ledger entry, read from its description and not with the product's code.

``userMetadata`` is one JSON object with ``"rivermouth": 1``, its format, in a commit whose ``txn``
has the appId ``rivermouth/<pipeline>`` and the entry's sequence as version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.faults.checker.at_length import at_length
from tests.faults.checker.evidence import Place, shown


class Span(NamedTuple):
    """The offsets ``start <= o < until`` of one partition."""

    place: Place
    start: int
    until: int

    def __str__(self) -> str:
        return f"{shown(self.place)}[{self.start},{self.until})"


class RowCounts(NamedTuple):
    """Of the records of one range: those with an effect, the bad ones, those that leave nothing."""

    applied: int
    quarantined: int
    skipped: int = 0


class Move(NamedTuple):
    """Where a partition stood and where it goes; None: it was not known, or it is gone."""

    place: Place
    was: int | None
    now: int | None


@dataclass(frozen=True)
class Changes:
    """What an operator accepted as changed: kinds, and what was recorded of it before."""

    kinds: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[Move, ...] = ()

    def renews(self, topic: str) -> bool:
        """Whether the topic is another one from here on."""
        return bool(self.cluster) or topic in self.topics


class Erased(NamedTuple):
    """The rows that the DELETE at ``version`` took on purpose; ``unlisted``: that many at most."""

    version: int
    spans: tuple[Span, ...]
    unlisted: int = 0


@dataclass(frozen=True)
class Entry:
    """An entry where it stands in the log, or in the offsets table once the log is gone.

    ``rows`` run beside ``spans`` where the entry states them.
    ``accepts``: ``restore`` or ``reset`` where an operator accepted an undoing. ``lost`` are
    offsets that Kafka deleted before they were read. ``ends``: where logs ended meanwhile.
    ``changes`` are those that it accepts, ``accepted`` all so far (kind and sequence; None where
    nothing tells), ``deletes`` the rows of others' DELETEs that it names.
    """

    pipeline: str
    version: int
    sequence: int
    commit: str
    cluster: str
    topics: Mapping[str, str]
    spans: tuple[Span, ...]
    position: Mapping[Place, int]
    rows: tuple[RowCounts, ...] | None = None
    accepts: str | None = None
    lost: tuple[Span, ...] = ()
    ends: Mapping[Place, int] = field(default_factory=dict)
    changes: Changes | None = None
    accepted: tuple[tuple[str, int], ...] | None = None
    deletes: tuple[Erased, ...] = ()

    def __str__(self) -> str:
        return f"entry {self.sequence} (version {self.version})"


def read_entry(text: str | None, pipeline: str, version: int) -> Entry:
    """The pipeline's entry in a ``userMetadata``. Raises ValueError where it is none."""
    try:
        written = json.loads(text or "")
        if written["pipeline"] != pipeline:
            raise ValueError(f"pipeline {written['pipeline']}")
        return _entry(version, at_length(written))
    except (LookupError, TypeError, AttributeError) as fault:
        raise ValueError(f"not an entry: {fault!r}") from fault


def _entry(version: int, facts: Mapping[str, Any]) -> Entry:
    rows = facts.get("rows")
    spans = _spans(facts["ranges"])
    if rows is not None and len(rows) != len(spans):
        raise ValueError(f"{len(rows)} counts for {len(spans)} ranges")
    return Entry(
        pipeline=facts["pipeline"],
        version=version,
        sequence=int(facts["sequence"]),
        commit=str(facts["commit"]),
        cluster=str(facts["cluster"]),
        topics=dict(facts["topics"]),
        spans=spans,
        position=_offsets(facts["position"]),
        rows=None if rows is None else tuple(RowCounts(*map(int, each)) for each in rows),
        accepts=None if facts.get("accepts") is None else str(facts["accepts"]["kind"]),
        lost=_spans(facts.get("lost") or ()),
        ends=_offsets(facts.get("ends") or {}),
        changes=_changes(facts["changes"]) if "changes" in facts else None,
        accepted=tuple((str(kind), int(at)) for kind, at in facts.get("accepted") or ()),
        deletes=tuple(_erased(each) for each in facts.get("deletes") or ()),
    )


def _changes(told: Mapping[str, Any]) -> Changes:
    moved = told.get("moved") or ()
    return Changes(
        tuple(map(str, told["kinds"])),
        dict(told.get("settings") or {}),
        str(told.get("cluster") or ""),
        dict(told.get("topics") or {}),
        tuple(Move((str(t), int(p)), was, now) for t, p, was, now in moved),
    )


def _erased(told: Mapping[str, Any]) -> Erased:
    """Of each partition: how many offsets are passed over, how many are named, and so on."""
    spans: list[Span] = []
    for topic, partitions in (told.get("rows") or {}).items():
        for partition, numbers in partitions.items():
            at = 0
            for skipped, count in zip(numbers[::2], numbers[1::2], strict=True):
                start, at = at + int(skipped), at + int(skipped) + int(count)
                spans.append(Span((str(topic), int(partition)), start, at))
    return Erased(int(told["version"]), tuple(spans), int(told.get("unlisted") or 0))


def _offsets(told: Mapping[str, Mapping[str, Any]]) -> dict[Place, int]:
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in told.items()
        for partition, offset in partitions.items()
    }


def _spans(listed: Iterable[Any]) -> tuple[Span, ...]:
    return tuple(
        Span((str(topic), int(partition)), int(start), int(until))
        for topic, partition, start, until in listed
    )
