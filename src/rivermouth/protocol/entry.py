"""The ledger: what each commit of ours says about itself, and what the log makes of it.

A commit of a pipeline carries a ``txn`` action (``app_id(pipeline)``, sequence) and, as
``userMetadata``, an ``Entry``. The table's log is the only truth; this room turns its
commits into a state (``chain``) and judges our own last write (``classify``). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, nested, unnested

ENTRY_FORMAT = 1
APP_PREFIX = "rivermouth/"


def app_id(pipeline: str) -> str:
    """The ``appId`` of the pipeline's ``txn`` actions."""
    return APP_PREFIX + pipeline


@dataclass(frozen=True)
class RowCounts:
    """Records of one range that took effect, and that went to quarantine.

    An applied record of an upsert may be superseded in its own batch: it still counts.
    """

    applied: int
    quarantined: int


@dataclass(frozen=True)
class Accepted:
    """What an operator accepted: that an operation of others undid commits.

    ``kind`` is ``restore`` or ``reset`` (the table was emptied or replaced), ``version`` the
    operation's, ``standing`` the sequence it left standing, 0 for none.
    """

    kind: str
    version: int
    standing: int


@dataclass(frozen=True)
class Entry:
    """What one commit records, whole enough to resume from it alone.

    ``position`` is the state *after* the commit. ``config`` holds the settings that give
    the pipeline its identity, in clear, so that a change can be named. ``rows`` runs
    parallel to ``ranges``; None where the counts are not known before the commit. ``lost``
    are those of the ``ranges`` that Kafka had deleted before they were read. ``accepts``
    marks the one kind of entry whose position may go back. ``epochs`` are leader epochs in
    which each partition's log reached to the position. ``base`` is the version of the table
    that it was planned on (-1: not told), ``ends`` where the partitions' logs ended then:
    what lies behind the position is the lag. The first sequence is 1.
    Raises ValueError where the parts do not fit together.
    """

    pipeline: str
    sequence: int
    commit: str
    cluster: str
    table: str
    topics: Mapping[str, str]
    ranges: tuple[OffsetRange, ...]
    position: Position
    config: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[RowCounts, ...] | None = None
    lost: tuple[OffsetRange, ...] = ()
    accepts: Accepted | None = None
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    base: int = -1
    ends: Position = field(default_factory=Position)

    def __post_init__(self) -> None:
        if self.sequence < 1:
            raise ValueError(f"sequence {self.sequence}: the first is 1")
        for each in self.ranges:
            if self.position.get(each.topic_partition) != each.until_offset:
                raise ValueError(f"{each} does not end at the position")
        if self.rows is not None and len(self.rows) != len(self.ranges):
            raise ValueError(f"{len(self.rows)} counts for {len(self.ranges)} ranges")
        if not set(self.lost) <= set(self.ranges):
            raise ValueError("a lost range that is none of the ranges")
        if self.accepts is not None and any(each.span for each in self.ranges):
            raise ValueError("an entry that accepts an undoing covers no offsets")

    def to_json(self) -> str:
        """One line of JSON, the ``userMetadata`` of the commit."""
        facts: dict[str, Any] = {
            "rivermouth": ENTRY_FORMAT,
            "pipeline": self.pipeline,
            "sequence": self.sequence,
            "commit": self.commit,
            "cluster": self.cluster,
            "table": self.table,
            "topics": dict(self.topics),
            "ranges": _listed(self.ranges),
            "position": self.position.as_nested(),
            "config": dict(self.config),
        }
        if self.rows is not None:
            facts["rows"] = [[each.applied, each.quarantined] for each in self.rows]
        if self.lost:
            facts["lost"] = _listed(self.lost)
        if self.accepts is not None:
            facts["accepts"] = vars(self.accepts)
        if self.base >= 0:
            facts["base"] = self.base
        if self.epochs:
            facts["epochs"] = nested(self.epochs)
        if self.ends.offsets:
            facts["ends"] = self.ends.as_nested()
        return json.dumps(facts, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Entry | None:
        """The entry in a ``userMetadata``, or None where it is somebody else's text.

        Raises LedgerBroken for a text that claims to be an entry and cannot be read.
        """
        try:
            facts = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(facts, dict) or "rivermouth" not in facts:
            return None
        if facts["rivermouth"] != ENTRY_FORMAT:
            raise LedgerBroken(
                "an entry of a format this version does not know",
                expected=f"format {ENTRY_FORMAT}",
                found=f"format {facts['rivermouth']}",
                remedy="Upgrade rivermouth",
            )
        try:
            return _entry(facts)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as fault:
            raise LedgerBroken("an entry that cannot be read", found=repr(fault)) from fault


def _entry(facts: Mapping[str, Any]) -> Entry:
    rows, accepts = facts.get("rows"), facts.get("accepts")
    return Entry(
        pipeline=_text(facts["pipeline"]),
        sequence=int(facts["sequence"]),
        commit=_text(facts["commit"]),
        cluster=_text(facts["cluster"]),
        table=_text(facts["table"]),
        topics=dict(facts["topics"]),
        ranges=_ranges(facts["ranges"]),
        position=Position.from_nested(facts["position"]),
        config=dict(facts["config"]),
        rows=None if rows is None else tuple(RowCounts(*each) for each in rows),
        lost=_ranges(facts.get("lost", ())),
        accepts=None if accepts is None else Accepted(**accepts),
        epochs=unnested(facts.get("epochs", {})),
        base=int(facts.get("base", -1)),
        ends=Position.from_nested(facts.get("ends", {})),
    )


def _listed(ranges: Iterable[OffsetRange]) -> list[list[Any]]:
    return [[each.topic, each.partition, each.from_offset, each.until_offset] for each in ranges]


def _ranges(listed: Iterable[Any]) -> tuple[OffsetRange, ...]:
    return tuple(
        OffsetRange(TopicPartition(topic, partition), start, until)
        for topic, partition, start, until in listed
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


@dataclass(frozen=True)
class CommitRecord:
    """One commit of a table's log, as the ledger looks at it.

    ``txns`` maps appId to version for the ``txn`` actions of this commit. ``parameters``
    are Delta's ``operationParameters``; ``timestamp_ms`` is when Delta says it happened.
    """

    version: int
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, Any]
    txns: Mapping[str, int]
    user_metadata: str | None


class Outcome(Enum):
    """What became of a write of ours, judged on the log read back."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already committed"
    SUPERSEDED = "superseded"
    ABSENT = "absent"
    UNKNOWN = "unknown"


def classify(ours: Entry, since: Iterable[CommitRecord] | None) -> Outcome:
    """Judge our write on the commits that came after the version it was planned from.

    ``since`` is None where the log could not be read. ABSENT means that neither our entry
    nor any other with its sequence is there: the write did not happen.
    """
    if since is None:
        return Outcome.UNKNOWN
    rival = Outcome.ABSENT
    for record in since:
        entry = entry_of(record, ours.pipeline)
        if entry is not None and entry.commit == ours.commit:
            return Outcome.COMMITTED
        if entry is not None and entry.sequence == ours.sequence:
            same = entry.ranges == ours.ranges
            rival = Outcome.ALREADY_COMMITTED if same else Outcome.SUPERSEDED
        elif record.txns.get(app_id(ours.pipeline), 0) >= ours.sequence:
            rival = Outcome.SUPERSEDED
    return rival


def entry_of(record: CommitRecord, pipeline: str) -> Entry | None:
    """The pipeline's entry in a commit; None where the commit carries none of its ``txn``.

    ``userMetadata`` alone proves nothing: a session conf may stamp it on any commit.
    """
    if record.user_metadata is None or app_id(pipeline) not in record.txns:
        return None
    entry = Entry.from_json(record.user_metadata)
    return entry if entry is not None and entry.pipeline == pipeline else None
