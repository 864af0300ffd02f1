"""A ledger entry, read from its description and not with the product's code.

``userMetadata`` is one JSON object with ``"rivermouth": 2`` (or 1, see ``first_format``), in a
commit whose ``txn`` has the appId ``rivermouth/<pipeline>`` and the entry's sequence as version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.faults.checker.evidence import Place, shown
from tests.faults.checker.first_format import first_format


class Span(NamedTuple):
    """The offsets ``start <= o < until`` of one partition."""

    place: Place
    start: int
    until: int

    def __str__(self) -> str:
        return f"{shown(self.place)}[{self.start},{self.until})"


@dataclass(frozen=True)
class Entry:
    """An entry where it stands in the log, or in the offsets table once the log is gone.

    ``rows`` (applied, quarantined) run beside ``spans`` where the entry states them.
    ``accepts``: ``restore`` or ``reset`` where an operator accepted an undoing. ``lost`` are
    offsets that Kafka deleted before they were read. ``ends``: where logs ended meanwhile.
    """

    pipeline: str
    version: int
    sequence: int
    commit: str
    cluster: str
    topics: Mapping[str, str]
    spans: tuple[Span, ...]
    position: Mapping[Place, int]
    rows: tuple[tuple[int, int], ...] | None = None
    accepts: str | None = None
    lost: tuple[Span, ...] = ()
    restamp: bool = False
    ends: Mapping[Place, int] = field(default_factory=dict)
    format: int = 1

    def __str__(self) -> str:
        return f"entry {self.sequence} (version {self.version})"


def read_entry(text: str | None, pipeline: str, version: int) -> Entry:
    """The pipeline's entry in a ``userMetadata``. Raises ValueError where it is none."""
    try:
        written = json.loads(text or "")
        if written["pipeline"] != pipeline:
            raise ValueError(f"pipeline {written['pipeline']}")
        return replace(_entry(version, first_format(written)), format=written["rivermouth"])
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
        rows=None if rows is None else tuple((int(a), int(q)) for a, q in rows),
        accepts=None if facts.get("accepts") is None else str(facts["accepts"]["kind"]),
        lost=_spans(facts.get("lost") or ()),
        restamp=bool(facts.get("restamp")),
        ends=_offsets(facts.get("ends") or {}),
    )


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
