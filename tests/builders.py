"""Values for tests, in few words: ranges, positions, entries, and the log of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rivermouth.protocol.commits import CommitPlan, CommitRecord, Purpose, Recorded, app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition

PIPELINE = "orders"
CLUSTER = "cluster-1"
TABLE = "table-1"
TOPIC = "t"
TOPICS = {TOPIC: "topic-1"}


def place(partition: int = 0, topic: str = TOPIC) -> TopicPartition:
    return TopicPartition(topic, partition)


def span(start: int, until: int, partition: int = 0, topic: str = TOPIC) -> OffsetRange:
    return OffsetRange(TopicPartition(topic, partition), start, until)


def position(*offsets: int, topic: str = TOPIC) -> Position:
    """The position whose partition 0 stands at the first offset, 1 at the second, …"""
    return Position({TopicPartition(topic, n): offset for n, offset in enumerate(offsets)})


def entry_after(previous: Entry | None, *ranges: OffsetRange, pipeline: str = PIPELINE) -> Entry:
    """The entry that rightly follows ``previous``."""
    sequence = previous.sequence + 1 if previous else 1
    return Entry(
        pipeline=pipeline,
        sequence=sequence,
        commit=f"{pipeline}-commit-{sequence}",
        cluster=CLUSTER,
        table=TABLE,
        topics=TOPICS,
        ranges=ranges,
        position=(previous.position if previous else Position()).advance(ranges),
        config={"mode": "append"},
        rows=tuple(RowCounts(each.span, 0) for each in ranges),
    )


def recorded_entries(count: int, pipeline: str = PIPELINE) -> list[Recorded]:
    """Consecutive entries of two partitions, at version 1, 2, …"""
    newest, found = None, []
    for n in range(count):
        newest = entry_after(newest, span(n * 5, n * 5 + 5), span(n, n + 1, 1), pipeline=pipeline)
        found.append(recorded(newest, n + 1))
    return found


def recorded(entry: Entry, version: int) -> Recorded:
    return Recorded(version, 1_700_000_000_000 + version, entry)


def plan_of(entry: Entry, base: int | None = None) -> CommitPlan:
    """The plan of the commit that carries ``entry``."""
    return CommitPlan(Purpose.BATCH, entry.draft, entry.commit, base)


def record_of_entry(version: int, entry: Entry, operation: str = "WRITE") -> CommitRecord:
    """The commit at ``version`` that carries ``entry``."""
    txns = {app_id(entry.pipeline): entry.sequence}
    return CommitRecord(version, version * 1000, operation, {}, txns, to_json(entry))


def foreign(
    version: int, operation: str, parameters: Mapping[str, Any] | None = None
) -> CommitRecord:
    """A commit of somebody else at ``version``."""
    return CommitRecord(version, version * 1000, operation, parameters or {}, {}, None)


class TableLog:
    """A table's log in the making; each step adds one commit and gives the log back."""

    def __init__(self, pipeline: str = PIPELINE) -> None:
        self.records: list[CommitRecord] = []
        self.pipeline = pipeline
        self.newest: Entry | None = None
        self.did("CREATE TABLE")

    @property
    def next_version(self) -> int:
        return len(self.records)

    def wrote(self, *ranges: OffsetRange) -> TableLog:
        self.newest = entry_after(self.newest, *ranges, pipeline=self.pipeline)
        self.records.append(record_of_entry(self.next_version, self.newest))
        return self

    def did(self, operation: str, **parameters: object) -> TableLog:
        self.records.append(foreign(self.next_version, operation, parameters))
        return self

    def restored(self, version: object) -> TableLog:
        return self.did("RESTORE", version=version, timestamp=None)


def replayed(records: Iterable[CommitRecord], pipeline: str = PIPELINE) -> History:
    """What a log says of a pipeline's ledger."""
    return replay(History(pipeline, ""), records)[0]


def renumbered(records: list[CommitRecord]) -> list[CommitRecord]:
    """The same commits as versions 0, 1, 2, …: a log that looks whole."""
    return [replace(each, version=version) for version, each in enumerate(records)]
