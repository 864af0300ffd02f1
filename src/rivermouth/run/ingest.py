"""One pipeline in one run: the order of the rooms, and nothing else.

Opened once (read facts, pass the guards, repair the projection), then fed micro-batches:
relate, decide, decode, and let the keeper commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import OnDataLoss, Pipeline
from rivermouth.debug import trace
from rivermouth.debug.failpoints import reach
from rivermouth.errors import ResumeRefused
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.entry import Accepted, Entry, RowCounts
from rivermouth.protocol.guards import (
    check_alone,
    check_identity,
    check_partition,
    check_source,
    check_uncut,
    neighbours,
    unsure,
)
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks
from rivermouth.protocol.planning import (
    Action,
    KafkaFacts,
    Starts,
    behind,
    births,
    decide,
    start_positions,
)
from rivermouth.protocol.rollback import kind_of, restored_position
from rivermouth.run.committer import Keeper
from rivermouth.run.report import Listener, OpenReport
from rivermouth.warehouse.folder.log import is_old
from rivermouth.warehouse.ports import Books
from rivermouth.write.commit import Writer


@dataclass(frozen=True)
class Rooms:
    """The edges a pipeline works with."""

    kafka: Kafka
    books: Books
    writer: Writer
    decode: Callable[[DataFrame], DataFrame]
    listener: Listener
    now: Callable[[], float] = time.time


class Ingest:
    """What may be done to one pipeline: open it, feed it batches, accept an undoing."""

    def __init__(self, pipeline: Pipeline, rooms: Rooms) -> None:
        self.pipeline = pipeline
        self._rooms = rooms
        self._keeper = Keeper(
            pipeline.name,
            str(pipeline.target.table),
            pipeline.identity,
            rooms.books,
            rooms.listener,
        )
        self._facts = KafkaFacts("", {}, {})

    @property
    def sequence(self) -> int:
        """The sequence of the newest entry."""
        return self._keeper.chain.sequence

    def watermarks(self, position: Position) -> Mapping[TopicPartition, Watermarks]:
        """What Kafka holds now of the topics. Raises the Halt that applies where it no longer
        holds what ``position`` says: no batch looks while there is nothing to read.
        """
        facts = self._rooms.kafka.facts(self.pipeline.source.topics)
        self._check_source(facts.cluster, facts.topics)
        for each, offset in position.offsets.items():
            check_partition(self.pipeline.name, each, offset, facts.watermarks.get(each))
        return facts.watermarks

    def open(self, session: SparkSession) -> Position:
        """Pass every guard and return the next offset to read of each partition.

        The table exists and is locked by us. Brings the offsets table up to date, and
        records partitions that the ledger has never seen, losses that are to be recorded,
        and, once the newest entry is old, that entry again: log clean-up must not take it.
        Raises a Halt before any write.
        """
        reach("P0")
        keeper = self._keeper
        keeper.read()
        self._facts = self._rooms.kafka.facts(self.pipeline.source.topics)
        keeper.check()
        newest = keeper.chain.newest
        if newest is not None:
            check_identity(keeper.where, newest, keeper.table, self.pipeline.identity)
        else:
            others = neighbours(self._rooms.books.log.commits(), self.pipeline.name)
            check_alone(keeper.where, others, self._facts.cluster, self._facts.topics)
        starts = self._starts()
        self._check_uncut()
        self._trace_open()
        old = is_old(keeper.age_s(self._rooms.now()), self._rooms.books.log.retention_s())
        # No ranges: the offsets table gave it back, or lacks it, as older versions wrote it again.
        old = old or keeper.was_undone() or (newest is not None and not newest.ranges)
        resumed, projected = self.sequence, keeper.catch_up()
        reach("P10")
        born = (*births(starts.position, newest), *starts.lost)
        if born or old:
            kind = "loss" if starts.lost else "births" if born else "restamp"
            entry = keeper.entry(self._facts, born or _here(keeper.chain.position))
            self._record(session, kind, replace(entry, lost=starts.lost))
        self._rooms.listener.opened(
            OpenReport(
                pipeline=self.pipeline.name,
                sequence=resumed,
                position=starts.position,
                behind=behind(starts.position, self._facts.watermarks),
                projected=projected,
                lost=starts.lost,
                held_back=sum(self._facts.held_back.values()),
                recovered=keeper.recovered,
            )
        )
        return starts.position

    def batch(self, raw: DataFrame, ranges: Sequence[OffsetRange]) -> None:
        """Commit one micro-batch of raw Kafka rows that covers exactly ``ranges``."""
        self._check_source(*self._rooms.kafka.identities(self.pipeline.source.topics))
        newest = self._keeper.chain.newest
        places = {*self._keeper.chain.position, *(each.topic_partition for each in ranges)}
        self._facts = replace(self._facts, ends=self._rooms.kafka.ends(places))
        self._check_uncut()
        decision = decide(self.pipeline.name, ranges, newest)
        reach("P2")
        if decision.halt is not None:
            raise decision.halt
        if decision.action is Action.PROCEED and ranges:
            entry = self._keeper.entry(self._facts, tuple(ranges))
            self._trace_plan("batch", entry)
            decoded = self._rooms.decode(raw)
            self._keeper.commit(entry, partial(self._rooms.writer.write, decoded))

    def resume(self, session: SparkSession, accept: str) -> Position:
        """Write an entry that accepts what undid commits, and return where it goes on.

        ``accept`` is ``restore`` (go on from the restored state) or ``reset`` (the table was
        emptied or made anew: start over). Raises ResumeRefused where that did not happen.
        """
        keeper = self._keeper
        keeper.read()
        self._facts = self._rooms.kafka.facts(self.pipeline.source.topics)
        accepted = self._accepted(accept)
        self._check_source(self._facts.cluster, self._facts.topics)
        if accept == "restore":
            self._check_uncut()
        position = self._accepted_position(accepted)
        sequence = max(self.sequence, keeper.projected()) + 1
        keeper.catch_up()
        entry = replace(
            keeper.entry(self._facts, ()),
            sequence=sequence,
            position=position,
            ranges=_here(position),
            accepts=accepted,
        )
        self._record(session, "resume", entry)
        return position

    def _accepted_position(self, accepted: Accepted) -> Position:
        """Where what was accepted left the table.

        Where nothing stands and log clean-up has taken where partitions were born, they start
        where the configuration says, as after a reset.
        """
        entries = self._keeper.entries
        born_here = bool(entries) and entries[0].sequence == 1
        if accepted.kind == "reset" or not (accepted.standing or born_here):
            return self._starts(anew=True).position
        return restored_position(entries, accepted.standing)

    def _accepted(self, accept: str) -> Accepted:
        chain = self._keeper.chain
        undone_by, ahead = chain.undone_by, self._keeper.projected() > chain.sequence
        if undone_by is not None:
            found = kind_of(undone_by) if chain.standing >= 0 else "a RESTORE nobody can resolve"
            accepted = Accepted(accept, undone_by.version, max(chain.standing, 0))
        else:
            made_anew = chain.newest is None and ahead
            found = "reset" if made_anew else "nothing that undid commits"
            accepted = Accepted(accept, 0, 0)
        others = [each for each in chain.faults if each.code != "RM411"]
        if others:
            raise others[0]
        if found != accept:
            raise ResumeRefused(
                f"there is no {accept} to accept",
                where=self._keeper.where,
                expected=accept,
                found=found,
            )
        return accepted

    def _starts(self, *, anew: bool = False) -> Starts:
        source = self.pipeline.source
        return start_positions(
            self.pipeline.name,
            None if anew else self._keeper.chain.newest,
            self._facts,
            lambda each: source.start.of(each.topic, each.partition),
            record_loss=source.on_data_loss is OnDataLoss.RECORD,
        )

    def _check_source(self, cluster: str, topics: Mapping[str, str]) -> None:
        newest = self._keeper.chain.newest
        if newest is not None:
            check_source(self.pipeline.name, newest, cluster, topics)

    def _check_uncut(self) -> None:
        newest = self._keeper.chain.newest
        anchors = unsure(newest, self._facts.epochs) if newest is not None else {}
        check_uncut(self.pipeline.name, anchors, self._rooms.kafka.truncated_logs(anchors))

    def _record(self, session: SparkSession, kind: str, entry: Entry) -> None:
        self._trace_plan(kind, entry)
        nothing = (RowCounts(0, 0),) * len(entry.ranges)
        self._keeper.record(session, replace(entry, rows=nothing))

    def _trace_open(self) -> None:
        chain = self._keeper.chain
        trace.step(
            self.pipeline.name,
            "open",
            version=chain.version,
            sequence=chain.sequence,
            standing=chain.standing,
            position=chain.position.as_nested(),
            projected=self._keeper.projected(),
        )

    def _trace_plan(self, kind: str, entry: Entry) -> None:
        ranges = trace.listed(entry.ranges)
        trace.step(self.pipeline.name, "plan", kind=kind, sequence=entry.sequence, ranges=ranges)


def _here(position: Position) -> tuple[OffsetRange, ...]:
    """Empty ranges where ``position`` stands: by them the offsets table, too, has the entry."""
    return tuple(OffsetRange(each, at, at) for each, at in position.offsets.items())
