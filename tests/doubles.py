"""In-memory stand-ins for the edges of ``Ingest``: a log, Kafka, an offsets table, writers.

The tables lie in a folder, or in a catalog (``World.catalog``), which tells no ``txn``.

They keep what the real ones promise (a stale ``txn`` is skipped silently, a commit is all or
nothing, the offsets table compares sequences) and can be told to crash at a named step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, cast

from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import (
    Column,
    OnDataLoss,
    OnMissingTime,
    Pipeline,
    Source,
    Start,
    TableName,
    Target,
    Topics,
)
from rivermouth.errors import (
    BatchFailed,
    CommitConflict,
    KafkaRefused,
    LogUnreadable,
    RivermouthError,
)
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.commits import CommitPlan, CommitRecord, Recorded
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.history import History
from rivermouth.protocol.kafka_facts import KafkaFacts, Retention
from rivermouth.protocol.offsets import (
    Anchor,
    LogEnd,
    OffsetRange,
    PartitionOffset,
    Position,
    TopicPartition,
    Watermarks,
)
from rivermouth.protocol.starts import ranges_between
from rivermouth.run.accepting import AcceptedDelete, accept_deletes
from rivermouth.run.committer import Coordinates
from rivermouth.run.ingest import Edges, Ingest
from rivermouth.run.projecting import AtOnce, Projecting
from rivermouth.run.report import (
    CommitReport,
    Listener,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
)
from rivermouth.warehouse.ledger import Others
from rivermouth.warehouse.ports import (
    Attempts,
    LedgerStore,
    LedgerWrites,
    OffsetsTable,
)
from rivermouth.write.landing import RawBatch, Staged
from tests.builders import CLUSTER, PIPELINE, TABLE, TOPIC, TOPICS, place, replayed
from tests.memory import MemoryLog, MemoryOffsets, MemoryTable

Offset = tuple[TopicPartition, int]
NO_SESSION = cast(SparkSession, None)
STEPS = (
    "before write",
    "after quarantine",
    "answer lost",
    "write returned",
    "read back",
    "before projection",
    "after projection",
    "reported",
)


class Killed(BaseException):
    """The process ends here. Not an Exception, so that nothing can catch it and go on."""


class WriteFailed(Exception):
    """What a foreign writer may raise: before its commit, or after it."""


class Conflict(Exception):
    """A commit of others came in between."""


@dataclass
class Crash:
    """What goes wrong next, and where: nothing, or once at ``step``."""

    step: str = ""
    times: int = 0
    """How often a write still conflicts, where the step is "conflicts"."""

    def at(self, step: str, error: type[BaseException] = Killed) -> None:
        if self.step == step:
            self.step = ""
            raise error(step)


@dataclass
class World:
    """What outlives every process: topic, table, quarantine, offsets table."""

    catalog: ClassVar[bool] = False
    """Whether no ``txn`` can be asked for, neither the table's nor the offsets table's."""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    low: dict[TopicPartition, int] = field(default_factory=dict)
    cluster: str = CLUSTER
    topics: Mapping[str, str] = field(default_factory=lambda: dict(TOPICS))
    log: MemoryTable = field(default_factory=lambda: MemoryTable(table_id=TABLE))
    offsets: MemoryOffsets = field(default_factory=MemoryOffsets)
    rows: list[tuple[int, Offset]] = field(default_factory=list)
    quarantine: list[tuple[str, Offset]] = field(default_factory=list)
    stands: set[str] = field(default_factory=set)
    """The commit ids of entries that the table as it is rests on."""
    kept: dict[int, tuple[list[tuple[int, Offset]], set[str]]] = field(default_factory=dict)
    """Rows and standing commits of every version, for RESTORE."""
    now: float = 0.0
    """The clock, in seconds since 1970; the time of a commit is its version, in ms."""
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    cuts: list[tuple[TopicPartition, int, int]] = field(default_factory=list)
    """Logs that were cut: partition, the last leader epoch before, and the end it left."""
    unlisted: frozenset[str] = frozenset()
    """Topics that are there, and not among the names that the broker tells."""
    staging_reads: bool = False
    """Whether a batch is read when it is staged, and not when it is committed."""
    amid: list[Callable[[], object]] = field(default_factory=list)
    """What happens while batches are read, one after the other."""
    asked: Callable[[], object] = lambda: None
    """What happens when Kafka is asked for ids."""
    reads: int = 0
    """How often a batch was read."""
    deaf: bool = False
    """Whether a commit is dropped without a word, as a defect of Delta's would."""
    late: list[tuple[int, Entry, list[Offset]]] = field(default_factory=list)
    """What a store has still to get: the version that it would be, the entry, and its rows."""

    def __post_init__(self) -> None:
        self.log.tells_txn = self.offsets.tells_txn = not self.catalog

    @property
    def commits(self) -> list[CommitRecord]:
        return self.log.commits

    @commits.setter
    def commits(self, commits: list[CommitRecord]) -> None:
        self.log.commits = commits

    @property
    def projected(self) -> list[Recorded]:
        return self.offsets.projected

    @property
    def history(self) -> History:
        """What the log says of the pipeline's ledger."""
        return replayed(self.commits)

    @property
    def newest(self) -> Entry:
        """The newest entry in the log; there is one."""
        entry = self.history.newest
        assert entry is not None
        return entry

    def commit(self, entry: Entry, rows: Iterable[Offset]) -> None:
        """As Delta does: nothing, silently, where the ``txn`` is not above the recorded one."""
        version = None if self.deaf else self.log.commit(entry)
        if version is None:
            return
        self.rows += [(version, row) for row in rows]
        self.stands.add(entry.commit)
        self._keep(version)

    def arrive(self) -> None:
        """What was under way to the store is there, where its version still was to be made."""
        for version, entry, rows in self.late:
            if version == len(self.commits):
                self.commit(entry, rows)
        self.late = []

    def did(self, operation: str, **parameters: object) -> None:
        self._keep(self.log.did(operation, **parameters))

    def _keep(self, version: int) -> None:
        self.kept[version] = ([*self.rows], {*self.stands})

    def restore(self, version: int) -> None:
        """Take the table back to ``version``, as RESTORE does: rows go, ``txn`` stays."""
        rows, stands = self.kept.get(version, ([], set()))
        self.rows, self.stands = [*rows], {*stands}
        self.did("RESTORE", version=version, timestamp=None)

    def truncate(self) -> None:
        self.rows, self.stands = [], set()
        self.did("TRUNCATE")

    def cut(self, where: TopicPartition, end: int, grown: int) -> None:
        """An unclean election: the log ends at ``end``, then grows by other records."""
        self.cuts.append((where, self.epochs.get(where, 0), end))
        self.epochs[where] = self.epochs.get(where, 0) + 1
        self.ends[where] = end + grown

    def applied(self) -> list[Offset]:
        """Every offset that took effect: in the table, or in a quarantine row that counts."""
        bad = [row for commit, row in self.quarantine if commit in self.stands]
        return sorted([*(row for _, row in self.rows), *bad])


class CrashingLog(MemoryLog):
    """A log at which a driver may die, or which it cannot read once."""

    def __init__(self, world: World, crash: Crash) -> None:
        super().__init__(world.log)
        self._crash = crash

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        self._crash.at("read back")
        if self._crash.step == "log unreadable":
            self._crash.step = ""
            raise LogUnreadable("a commit cannot be read")
        return super().commits_after(version)


class WatchedLog(MemoryLog):
    """A log that notes which versions are read, but for what came after a known one."""

    def __init__(self, world: World) -> None:
        super().__init__(world.log)
        self.read: set[int] = set()

    def commits(self) -> Iterator[CommitRecord]:
        return self._noted(super().commits())

    def commits_backwards(self) -> Iterator[CommitRecord]:
        return self._noted(super().commits_backwards())

    def _noted(self, records: Iterator[CommitRecord]) -> Iterator[CommitRecord]:
        for each in records:
            self.read.add(each.version)
            yield each


class MemoryKafka(Kafka):
    def __init__(self, world: World) -> None:
        self._world = world

    def names(self) -> frozenset[str]:
        return frozenset(self._world.topics) - self._world.unlisted

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        return frozenset(topics) - self._world.topics.keys()

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        marks = {
            each: Watermarks(self._world.low.get(each, 0), end)
            for each, end in sorted(self._world.ends.items())
            if each.topic in set(topics)
        }
        return KafkaFacts(*self.identities(topics), marks, ends=self.ends(marks))

    def identities(self, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
        self._world.asked()
        return self._world.cluster, {each: self._world.topics[each] for each in topics}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        ends, epochs = self._world.ends, self._world.epochs
        return {each: LogEnd(ends[each], epochs.get(each, 0)) for each in partitions}

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        """A record comes every second, the first one in 1970."""
        ends = {each: self._world.ends[each] for each in times}
        first = {each: math.ceil(at.timestamp()) for each, at in times.items()}
        return {each: at if at < ends[each] else None for each, at in first.items()}

    def first_timestamps(
        self, wanted: Collection[PartitionOffset]
    ) -> dict[PartitionOffset, int | None]:
        """As ``offsets_at`` has them."""
        return {(place, offset): offset * 1000 for place, offset in wanted}

    def retentions(self, topics: Iterable[str]) -> dict[str, Retention]:
        return dict.fromkeys(topics, Retention("delete", None, None))

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return {
            each: end
            for each, last, end in sorted(self._world.cuts, key=lambda cut: -cut[2])
            if each in anchors and anchors[each][1] <= last and end < anchors[each][0]
        }


@dataclass
class MemoryGroups:
    """Consumer groups of which some have live members, and some do not answer."""

    held: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    failing: dict[str, Exception] = field(default_factory=dict)
    written: list[tuple[str, dict[TopicPartition, int]]] = field(default_factory=list)
    closed: bool = False

    def write(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._answer(group)
        if group in self.live:
            raise KafkaRefused("the consumer group has live members", where=f"group {group}")
        self.written.append((group, {**offsets}))
        self.held.setdefault(group, {}).update(offsets)

    def read(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        self._answer(group)
        return {each: self.held.get(group, {}).get(each) for each in partitions}

    def close(self) -> None:
        self.closed = True

    def _answer(self, group: str) -> None:
        if group in self.failing:
            raise self.failing[group]


class CrashingOffsets(MemoryOffsets):
    """The world's offsets table, at which a driver may die."""

    def __init__(self, world: World, crash: Crash) -> None:
        super().__init__(**vars(world.offsets))
        self._world = world
        self._crash = crash

    def project(self, entries: Sequence[Recorded]) -> None:
        self._crash.at("before projection")
        super().project(entries)
        self._crash.at("after projection")


class LateProjecting:
    """Keeps what it is handed until it is told to write: as the writer's thread may be late."""

    def __init__(self, offsets: OffsetsTable) -> None:
        self._offsets = offsets
        self.waiting: list[Sequence[Recorded]] = []

    def put(self, entries: Sequence[Recorded]) -> None:
        self.waiting.append(entries)

    def flush(self, pipeline: str) -> None:
        self.write(len(self.waiting))

    def write(self, number: int) -> None:
        """Write the first ``number`` that wait, in one commit."""
        taken, self.waiting = self.waiting[:number], self.waiting[number:]
        AtOnce(self._offsets).put([entry for each in taken for entry in each])


def check_exactly_once(world: World) -> None:
    """The ledger is whole, and each record that Kafka still has took effect once."""
    history = world.history
    assert history.faults == ()
    assert history.position == Position(world.ends)
    lows = {each: world.low.get(each, 0) for each in world.ends}
    whole = [(each, n) for each, end in sorted(world.ends.items()) for n in range(lows[each], end)]
    assert [row for row in world.applied() if row[1] >= lows[row[0]]] == whole
    assert world.projected[-1].entry.sequence == history.sequence


def is_bad(row: Offset) -> bool:
    """Every seventh record is poison."""
    return row[1] % 7 == 3


@dataclass
class MemoryLanding:
    """A landing whose batches are lists of offsets: quarantine ahead, then one commit."""

    world: World
    crash: Crash

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        del plan, stack
        if not self.world.staging_reads:
            return Staged(lambda plan: self._commit(self._read(batch), plan), was_read=False)
        return Staged(partial(self._commit, self._read(batch)))

    def record(self, plan: CommitPlan) -> None:
        self._commit([], plan)

    def _commit(self, rows: list[Offset], plan: CommitPlan) -> None:
        counts = []
        for each in plan.draft.ranges:
            here = [row for row in rows if row[0] == each.topic_partition]
            bad = sum(map(is_bad, here))
            counts.append(RowCounts(len(here) - bad, bad))
        self.crash.at("before write")
        self.crash.at("write failed", WriteFailed)
        if self.crash.step == "conflicts" and self.crash.times:
            self.crash.times -= 1
            raise Conflict
        self.world.quarantine += [(plan.commit, row) for row in rows if is_bad(row)]
        self.crash.at("after quarantine")
        entry, good = plan.entry(tuple(counts)), [row for row in rows if not is_bad(row)]
        if self.crash.step == "late":
            self.world.late.append((len(self.world.commits), entry, good))
            self.crash.at("late", WriteFailed)
        self.world.commit(entry, good)
        self.crash.at("answer lost", WriteFailed)
        self.crash.at("write returned")

    def _read(self, batch: RawBatch) -> list[Offset]:
        self.world.reads += 1
        if self.world.amid:
            self.world.amid.pop(0)()
        return cast(list[Offset], batch.decoded())


@dataclass
class Heard:
    """A listener that keeps what it hears; a driver may die when it reports a commit."""

    crash: Crash = field(default_factory=Crash)
    opens: list[OpenReport] = field(default_factory=list)
    commits: list[CommitReport] = field(default_factory=list)
    retries: list[RetryReport] = field(default_factory=list)
    mirrors: list[MirrorReport] = field(default_factory=list)
    ends: list[PipelineReport] = field(default_factory=list)

    @property
    def opening(self) -> OpenReport:
        """The newest report of an opening."""
        return self.opens[-1]

    def opened(self, report: OpenReport) -> None:
        self.opens.append(report)

    def committed(self, report: CommitReport) -> None:
        self.commits.append(report)
        self.crash.at("reported")

    def tries_again(self, report: RetryReport) -> None:
        self.retries.append(report)

    def not_mirrored(self, report: MirrorReport) -> None:
        self.mirrors.append(report)

    def finished(self, report: PipelineReport) -> None:
        self.ends.append(report)


def translated(fault: Exception) -> RivermouthError:
    if isinstance(fault, Conflict):
        return CommitConflict("others were in the way")
    return BatchFailed("the writer failed", found=repr(fault))


def a_pipeline(
    *topics: str,
    pattern: str = "",
    assigned: Mapping[str, tuple[int, ...]] | None = None,
    start: Start | None = None,
    keys: tuple[str, ...] = (),
    on_data_loss: OnDataLoss = OnDataLoss.HALT,
    on_missing_time: OnMissingTime = OnMissingTime.ERROR,
) -> Pipeline:
    read = Topics(topics or (TOPIC,)) if not pattern else Topics(pattern=pattern)
    source = Source(
        topics=read if assigned is None else Topics(tuple(assigned), assigned=assigned),
        format="json",
        on_data_loss=on_data_loss,
        on_missing_time=on_missing_time,
    )
    return Pipeline(
        name=PIPELINE,
        source=source.model_copy(update={"start": start} if start is not None else {}),
        ddl=(Column("id", "BIGINT"),),
        target=Target(
            table=TableName("silver", "orders"),
            mode="upsert" if keys else "append",
            keys=keys,
        ),
    )


def edges(
    world: World,
    crash: Crash,
    heard: Listener,
    offsets: OffsetsTable | None = None,
    projecting: Projecting | None = None,
    pipeline: Pipeline | None = None,
) -> Edges:
    """The edges of a pipeline over a world; ``offsets`` in place of its own offsets table.

    What it commits is written there at once, unless ``projecting`` takes it.
    """
    landing, log = MemoryLanding(world, crash), CrashingLog(world, crash)
    offsets, pipeline = offsets or CrashingOffsets(world, crash), pipeline or a_pipeline()
    at = Coordinates(
        pipeline=pipeline,
        store=LedgerStore(log, offsets),
        writes=LedgerWrites(count=list, record=landing.record, translate=translated),
        projecting=projecting or AtOnce(offsets),
        listener=heard,
        attempts=Attempts(lambda: repeat(0.0, 4), lambda _: None),
    )
    return Edges(
        at=at,
        kafka=MemoryKafka(world),
        landing=landing,
        decode=lambda raw: raw,
        others=Others(log, pipeline.ledger_name),
        now=lambda: world.now,
    )


class Driver:
    """One process: an ``Ingest`` over a world, and a stream that knows where it is.

    A ``late`` one goes on before what it committed is in the offsets table, see ``project``.
    """

    def __init__(
        self, world: World, pipeline: Pipeline | None = None, *, late: bool = False
    ) -> None:
        self.world = world
        self.crash = Crash()
        self.heard = Heard(self.crash)
        self.stands = Position()
        offsets = CrashingOffsets(world, self.crash)
        self.late = LateProjecting(offsets)
        projecting = self.late if late else AtOnce(offsets)
        self.ingest = Ingest(edges(world, self.crash, self.heard, offsets, projecting, pipeline))

    def goes_on_after(self, before: Driver) -> None:
        """It is the same run that opens its pipeline again."""
        unsettled = before.ingest._edges.at.unsettled
        edges = self.ingest._edges
        self.ingest._edges = replace(edges, at=replace(edges.at, unsettled=unsettled))

    def project(self, number: int = 1 << 30, crash: str = "") -> None:
        """Let the first ``number`` commits that wait come into the offsets table."""
        self.crash.step = crash
        self.late.write(number)
        self.crash.step = ""

    def open(self, crash: str = "", *, audit: bool = False) -> Driver:
        self.crash.step = crash
        self.stands = self.ingest.open(audit=audit)
        self.crash.step = ""
        return self

    def batch(self, limit: int = 1 << 30, crash: str = "") -> tuple[OffsetRange, ...]:
        """Read at most ``limit`` offsets of each partition and commit them."""
        topics = self.ingest.pipeline.source.topics
        after = {
            each: min(end, (self.stands.get(each) or 0) + limit)
            for each, end in self.world.ends.items()
            if topics.reads(each.topic, each.partition)
        }
        return self.offer(ranges_between(self.stands, Position(after)), Position(after), crash)

    def offer(
        self, ranges: tuple[OffsetRange, ...], after: Position, crash: str = ""
    ) -> tuple[OffsetRange, ...]:
        rows = [
            (each.topic_partition, offset)
            for each in ranges
            for offset in range(each.from_offset, each.until_offset)
            if offset >= self.world.low.get(each.topic_partition, 0)
        ]
        self.crash.step = crash
        self.ingest.batch(cast(DataFrame, rows), ranges)
        self.crash.step = ""
        self.stands = after
        return ranges


def a_world(*ends: int) -> World:
    """A topic whose partitions have so many records."""
    return World(ends={place(n): end for n, end in enumerate(ends)})


def until_done(
    world: World, act: Callable[[Driver], object] = lambda driver: driver.batch()
) -> Driver:
    """Start a new driver that nothing disturbs, and let it do its work."""
    driver = Driver(world).open()
    act(driver)
    return driver


def accept_in(
    world: World,
    *versions: int,
    rows: Sequence[OffsetRange] | None,
    crash: str = "",
    dry_run: bool = False,
    asked: list[tuple[int, int, bool]] | None = None,
) -> tuple[AcceptedDelete, ...]:
    """Accept the DELETEs at ``versions`` in a process of its own; each took ``rows``.

    ``asked`` takes what was asked of each.
    """
    driver = Driver(world)
    driver.crash.step = crash
    at = edges(world, driver.crash, driver.heard).at
    told: list[AcceptedDelete] = []

    def rows_of(*question: Any) -> Sequence[OffsetRange] | None:
        if asked is not None:
            asked.append(question)
        return rows

    found = accept_deletes(at, versions, rows_of, told.append, dry_run=dry_run)
    assert found == tuple(told), "what was told first is what was accepted"
    return found
