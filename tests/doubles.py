"""In-memory stand-ins for the edges of ``Ingest``: a log, Kafka, an offsets table, writers.

The tables lie in a folder, or in a catalog (``World.catalog``), which tells no ``txn``.

They keep what the real ones promise (a stale ``txn`` is skipped silently, a commit is all or
nothing, the offsets table compares sequences) and can be told to crash at a named step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import (
    Column,
    Format,
    Mode,
    OnDataLoss,
    Pipeline,
    Source,
    Start,
    TableName,
    Target,
)
from rivermouth.errors import BatchFailed, CommitConflict, LedgerBroken, RivermouthError
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.entry import CommitRecord, Entry, RowCounts, app_id
from rivermouth.protocol.history import Recorded
from rivermouth.protocol.offsets import (
    Anchor,
    LogEnd,
    OffsetRange,
    Position,
    TopicPartition,
    Watermarks,
)
from rivermouth.protocol.planning import KafkaFacts, batch_ranges
from rivermouth.run.ingest import Ingest, Rooms
from rivermouth.run.report import CommitReport, OpenReport, PipelineReport
from rivermouth.warehouse.folder.log import DeltaLog
from rivermouth.warehouse.folder.offsets import OffsetsTable
from rivermouth.warehouse.folder.row_counts import with_rows
from rivermouth.warehouse.ports import Books
from rivermouth.warehouse.recovered import Kept
from tests.builders import CLUSTER, PIPELINE, TABLE, TOPIC, TOPICS

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
    table: str = TABLE
    commits: list[CommitRecord] = field(
        default_factory=lambda: [CommitRecord(0, 0, "CREATE TABLE", {}, {}, None)]
    )
    rows: list[tuple[int, Offset]] = field(default_factory=list)
    quarantine: list[tuple[str, Offset]] = field(default_factory=list)
    stands: set[str] = field(default_factory=set)
    """The commit ids of entries that the table as it is rests on."""
    kept: dict[int, tuple[list[tuple[int, Offset]], set[str]]] = field(default_factory=dict)
    """Rows and standing commits of every version, for RESTORE."""
    projected: list[Recorded] = field(default_factory=list)
    projected_txn: dict[str, int] = field(default_factory=dict)
    halted: dict[str, int] = field(default_factory=dict)
    now: float = 0.0
    """The clock, in seconds since 1970; the time of a commit is its version, in ms."""
    first_version: int = 0
    """What comes before it, log clean-up has taken; the snapshot still knows its ``txn``."""
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    cuts: list[tuple[TopicPartition, int, int]] = field(default_factory=list)
    """Logs that were cut: partition, the last leader epoch before, and the end it left."""
    deaf: bool = False
    """Whether a commit is dropped without a word, as a defect of Delta's would."""

    def commit(self, entry: Entry, rows: Iterable[Offset]) -> None:
        """As Delta does: nothing, silently, where the ``txn`` is not above the recorded one."""
        app = app_id(entry.pipeline)
        stands = max((each.txns.get(app, 0) for each in self.commits), default=0)
        if self.deaf or stands >= entry.sequence:
            return
        version = len(self.commits)
        txns = {app: entry.sequence}
        self.commits.append(CommitRecord(version, version, "WRITE", {}, txns, entry.to_json()))
        self.rows += [(version, row) for row in rows]
        self.stands.add(entry.commit)
        self._keep(version)

    def did(self, operation: str, **parameters: object) -> None:
        version = len(self.commits)
        self.commits.append(CommitRecord(version, version, operation, parameters, {}, None))
        self._keep(version)

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


class MemoryLog(DeltaLog):
    def __init__(self, world: World, crash: Crash) -> None:
        super().__init__(Path("memory"))
        self._world = world
        self._crash = crash

    def commits(self) -> Iterator[CommitRecord]:
        return iter(self._world.commits[self._world.first_version :])

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        self._crash.at("read back")
        if self._crash.step == "log unreadable":
            self._crash.step = ""
            raise LedgerBroken("a commit cannot be read")
        return iter(self._world.commits[version + 1 :])

    def table_id(self) -> str:
        return self._world.table

    def txn_version(self, app: str) -> int:
        return max((each.txns.get(app, 0) for each in self._world.commits), default=0)

    def retention_s(self) -> float:
        return 30 * 86400.0

    def added_files(self, version: int) -> list[Path]:
        return []


class WithoutTxn:
    """The same log as a catalog tells it."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def commits(self) -> Iterator[CommitRecord]:
        return self._log.commits()

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        return self._log.commits_after(version)

    def table_id(self) -> str:
        return self._log.table_id()

    def txn_version(self, app: str) -> None:
        """Nobody can tell."""

    def retention_s(self) -> float:
        return self._log.retention_s()


class MemoryKafka(Kafka):
    def __init__(self, world: World) -> None:
        self._world = world

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        marks = {
            each: Watermarks(self._world.low.get(each, 0), end)
            for each, end in sorted(self._world.ends.items())
            if each.topic in set(topics)
        }
        return KafkaFacts(*self.identities(topics), marks, ends=self.ends(marks))

    def identities(self, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
        return self._world.cluster, {each: self._world.topics[each] for each in topics}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        ends, epochs = self._world.ends, self._world.epochs
        return {each: LogEnd(ends[each], epochs.get(each, 0)) for each in partitions}

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return {
            each: end
            for each, last, end in self._world.cuts
            if each in anchors and anchors[each][1] <= last and end < anchors[each][0]
        }


class MemoryOffsets(OffsetsTable):
    def __init__(self, world: World, crash: Crash) -> None:
        super().__init__(Path("memory"))
        self._world = world
        self._crash = crash

    def sequence(self, pipeline: str) -> int:
        if self._world.catalog:  # then only rows tell
            newest = self.newest(pipeline)
            return newest.sequence if newest else 0
        return self._world.projected_txn.get(pipeline, 0)

    def halted_at(self, pipeline: str) -> int:
        return self._world.halted.get(pipeline, 0)

    def note_halt(self, pipeline: str, version: int) -> None:
        self._world.halted[pipeline] = max(version, self.halted_at(pipeline))

    def newest(self, pipeline: str) -> Kept | None:
        ours = [each for each in self._world.projected if each.entry.pipeline == pipeline]
        ours = [each for each in ours if each.entry.ranges]  # one without has no row
        if not ours:
            return None
        last, version = ours[-1].entry, ours[-1].version
        return Kept(last.sequence, version, last.commit, last.cluster, last.topics, last.position)

    def project(self, recorded: Sequence[Recorded], table_name: str) -> None:
        self._crash.at("before projection")
        missing = [
            each
            for each in recorded
            if each.entry.sequence > self.sequence(each.entry.pipeline)
            and (each.entry.ranges or not self._world.catalog)
        ]
        for each in missing:
            assert each.entry.rows is not None, "an entry is projected with its counts"
            self._world.projected.append(each)
            self._world.projected_txn[each.entry.pipeline] = each.entry.sequence
        self._crash.at("after projection")


def is_bad(row: Offset) -> bool:
    """Every seventh record is poison."""
    return row[1] % 7 == 3


@dataclass
class MemoryWriter:
    """A writer whose batches are lists of offsets: quarantine ahead, then one commit."""

    world: World
    crash: Crash

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        rows = cast(list[Offset], decoded)
        counts = []
        for each in entry.ranges:
            here = [row for row in rows if row[0] == each.topic_partition]
            bad = sum(map(is_bad, here))
            counts.append(RowCounts(len(here) - bad, bad))
        self.crash.at("before write")
        self.crash.at("write failed", WriteFailed)
        if self.crash.step == "conflicts" and self.crash.times:
            self.crash.times -= 1
            raise Conflict
        self.world.quarantine += [(entry.commit, row) for row in rows if is_bad(row)]
        self.crash.at("after quarantine")
        entry = Entry(**{**vars(entry), "rows": tuple(counts)})
        self.world.commit(entry, [row for row in rows if not is_bad(row)])
        self.crash.at("answer lost", WriteFailed)
        self.crash.at("write returned")
        return entry

    def record(self, session: SparkSession, entry: Entry) -> None:
        self.write(cast(DataFrame, []), entry)


@dataclass
class Heard:
    """A listener that keeps what it hears."""

    crash: Crash
    opening: OpenReport | None = None
    commits: list[CommitReport] = field(default_factory=list)

    def opened(self, report: OpenReport) -> None:
        self.opening = report

    def committed(self, report: CommitReport) -> None:
        self.commits.append(report)
        self.crash.at("reported")

    def finished(self, report: PipelineReport) -> None:
        raise AssertionError("that is the run's to say")


def translated(fault: Exception) -> RivermouthError:
    if isinstance(fault, Conflict):
        return CommitConflict("others were in the way")
    return BatchFailed("the writer failed", found=repr(fault))


def a_pipeline(
    *topics: str,
    start: Start | None = None,
    keys: tuple[str, ...] = (),
    on_data_loss: OnDataLoss = OnDataLoss.HALT,
) -> Pipeline:
    return Pipeline(
        name=PIPELINE,
        source=Source(
            topics=topics or (TOPIC,),
            format=Format.JSON,
            start=start or Start(),
            on_data_loss=on_data_loss,
        ),
        columns=(Column("id", "BIGINT"),),
        target=Target(
            table=TableName("silver", "orders"),
            mode=Mode.UPSERT if keys else Mode.APPEND,
            keys=keys,
        ),
    )


class Driver:
    """One process: an ``Ingest`` over a world, and a stream that knows where it is."""

    def __init__(self, world: World, pipeline: Pipeline | None = None) -> None:
        self.world = world
        self.crash = Crash()
        self.heard = Heard(self.crash)
        self.log = MemoryLog(world, self.crash)
        self.stands = Position()
        writer = MemoryWriter(world, self.crash)
        self.ingest = Ingest(
            pipeline or a_pipeline(),
            Rooms(
                kafka=MemoryKafka(world),
                books=Books(
                    log=WithoutTxn(self.log) if world.catalog else self.log,
                    offsets=MemoryOffsets(world, self.crash),
                    with_rows=partial(with_rows, self.log),
                    record=writer.record,
                    translate=translated,
                    pause=lambda _: None,
                ),
                writer=writer,
                decode=lambda raw: raw,
                listener=self.heard,
                now=lambda: self.world.now,
            ),
        )

    def open(self, crash: str = "") -> Driver:
        self.crash.step = crash
        self.stands = self.ingest.open(NO_SESSION)
        self.crash.step = ""
        return self

    def batch(self, limit: int = 1 << 30, crash: str = "") -> tuple[OffsetRange, ...]:
        """Read at most ``limit`` offsets of each partition and commit them."""
        topics = self.ingest.pipeline.source.topics
        after = {
            each: min(end, (self.stands.get(each) or 0) + limit)
            for each, end in self.world.ends.items()
            if each.topic in topics
        }
        return self.offer(batch_ranges(self.stands, Position(after)), Position(after), crash)

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


def until_done(
    world: World, act: Callable[[Driver], object] = lambda driver: driver.batch()
) -> Driver:
    """Start a new driver that nothing disturbs, and let it do its work."""
    driver = Driver(world).open()
    act(driver)
    return driver
