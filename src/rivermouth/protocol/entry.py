"""The ledger entry: what one commit of ours says about itself. Pure.

A commit of a pipeline carries a ``txn`` action (see ``commits.app_id``) and, as ``userMetadata``,
one line of JSON (``entry_json``): an ``Entry``. Before the commit exists there is its ``Draft``;
the commit adds its id, the version it was planned on and, where they are known, the counts of its
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rivermouth.protocol.changes import Changes
from rivermouth.protocol.deleted import Deleted
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition


@dataclass(frozen=True)
class RowCounts:
    """Records of one range that took effect, and that went to quarantine.

    An applied record of an upsert may be replaced in its own batch: it still counts.
    """

    applied: int
    quarantined: int


Counts = tuple[RowCounts, ...]
"""The counts of a commit: one for each range of its entry, in the same order."""


@dataclass(frozen=True)
class Accepted:
    """What an operator accepted: that an operation of others rolled commits back.

    ``kind`` is ``restore`` or ``reset`` (the table was emptied or replaced), ``version`` the
    operation's, ``standing`` the sequence that it left in effect, 0 for none.
    """

    kind: str
    version: int
    standing: int


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What an entry will say, as far as it is decided before the commit exists.

    ``position`` is the state *after* the commit, so that the newest entry alone is enough to
    resume. ``config`` holds the settings that give the pipeline its identity, in clear, so that a
    change can be named. ``lost`` are those of the ``ranges`` that Kafka had deleted before they
    were read. ``accepts`` marks the kind of entry whose position goes back with the table, and
    ``changes`` the kind that moves it because the source was changed. ``accepted`` are the changes
    that were accepted so far: each kind, with the sequence of its entry. ``epochs`` are
    leader epochs in which each partition's log reached to the position, ``ends`` the end offsets
    of the partitions' logs when the entry was planned. ``columns`` are names and types by which
    the records were decoded; empty: not told. ``decoder`` names the version of the decoder and its
    settings, see ``Pipeline.decoder``; empty: version 1. ``metadata`` is what ``_kafka`` tells of a
    record beside its place and time. ``deletes`` are rows that an operator
    accepted as deleted on purpose. ``replayed`` are ranges that were read before, and whose records
    were applied once more. ``transform`` is what made the rows of the records: a function, or
    ``select``; empty: nothing did. ``explode``: each record may have any number of rows.
    ``assigned`` are the topics of which only some partitions are read, on purpose. ``ranges`` are
    in order. The first sequence is 1.
    Raises ValueError where the parts do not fit together.
    """

    pipeline: str
    sequence: int
    cluster: str
    table: str
    topics: Mapping[str, str]
    ranges: tuple[OffsetRange, ...]
    position: Position
    config: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[OffsetRange, ...] = ()
    accepts: Accepted | None = None
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Position = field(default_factory=Position)
    columns: tuple[tuple[str, str], ...] = ()
    decoder: Mapping[str, Any] = field(default_factory=dict)
    metadata: tuple[str, ...] = ()
    deletes: tuple[Deleted, ...] = ()
    replayed: tuple[OffsetRange, ...] = ()
    changes: Changes | None = None
    accepted: tuple[tuple[str, int], ...] = ()
    transform: str = ""
    explode: bool = False
    assigned: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.sequence < 1:
            raise ValueError(f"sequence {self.sequence}: the first is 1")
        for each in self.ranges:
            if self.position.get(each.topic_partition) != each.until_offset:
                raise ValueError(f"{each} does not end at the position")
        if not set(self.lost) <= set(self.ranges):
            raise ValueError("a lost range that is none of the ranges")
        if self.deletes and any(each.span for each in self.ranges):
            raise ValueError("an entry that accepts deletes covers no offsets")
        if self.replayed and any(each.span for each in self.ranges):
            raise ValueError("an entry of a replay covers no offsets")
        accepting = self.accepts is not None or self.changes is not None
        if accepting and any(each.span for each in self.ranges):
            raise ValueError("an entry that accepts a rollback or changes covers no offsets")

    def entry(self, commit: str, base: int | None, rows: Counts | None, left_out: int = 0) -> Entry:
        """The entry of the commit with this id, see ``Entry``. Raises ValueError."""
        return Entry(**vars(self), commit=commit, base=base, rows=rows, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class Entry(Draft):
    """What one commit records, whole enough to resume from it alone.

    ``commit`` is its own id, ``base`` the version of the table that it was planned on (None: not
    told). ``rows`` are the counts, parallel to ``ranges``; None where they are not known before
    the commit, which needs a row for each record. ``left_out`` are the records of a pipeline that
    sends of which its own code made no row. Raises ValueError where the parts do not fit together.
    """

    commit: str
    base: int | None = None
    rows: Counts | None = None
    left_out: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows is not None and len(self.rows) != len(self.ranges):
            raise ValueError(f"{len(self.rows)} counts for {len(self.ranges)} ranges")
        if self.explode and self.rows is None:
            raise ValueError("no counts, and rows that are not one for each record")
        if self.left_out < 0:
            raise ValueError(f"{self.left_out} records left out")

    @property
    def draft(self) -> Draft:
        """Its draft: what was decided before the commit existed."""
        return Draft(**{each.name: getattr(self, each.name) for each in fields(Draft)})


def topics_begun(newest: Draft | None) -> frozenset[str]:
    """The topics that have a position by the newest entry; none where there is no entry.

    ``Draft.topics`` tells ids of more: an accepting entry has that of a topic that was added to
    the configuration and is not read yet.
    """
    return frozenset(each.topic for each in newest.position) if newest is not None else frozenset()


def starts_anew(each: TopicPartition, newest: Draft | None) -> bool:
    """Whether ``start`` decides where a partition starts.

    So it is with a new topic, and where only other partitions of the topic were read so far. A
    partition that a topic gained while all of it was read is due from offset 0.
    """
    if newest is None or newest.position.get(each) is not None:
        return newest is None
    return each.topic in newest.assigned or each.topic not in topics_begun(newest)
