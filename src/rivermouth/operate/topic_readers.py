"""Where a pipeline stands in one topic: from what a run would do, or else from its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.config import Pipeline
from rivermouth.errors import RivermouthError, as_ours
from rivermouth.kafka.facts import AskKafka
from rivermouth.operate.looking import assessed
from rivermouth.operate.topic_facts import Answer, Fault
from rivermouth.operate.topic_report import Reader, Reading
from rivermouth.protocol.kafka_facts import KafkaFacts, behind, differ
from rivermouth.protocol.offsets import PartitionOffset, Position, TopicPartition, Watermarks
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import next_offsets
from rivermouth.protocol.topic_retention import (
    NOTHING_WAITS,
    Outlook,
    Retention,
    TimeLeft,
    gone,
    time_left,
    unknown,
)
from rivermouth.warehouse.ports import LedgerStore

_NO_RECORD = "only ends of transactions wait, and records that were aborted"


@dataclass(frozen=True)
class Standing:
    """The next offsets to read of a pipeline, in all its topics.

    ``recorded`` is the part that the ledger holds. ``reason`` says why the next run would not go
    on. Where not ``fits``, the positions are offsets of another log than the one that answers.
    """

    pipeline: Pipeline
    reason: str | None
    starts: Position = field(default_factory=Position)
    recorded: Position = field(default_factory=Position)
    fits: bool = True

    def lag(self, each: TopicPartition, marks: Watermarks | None) -> int | None:
        """The offsets up to the last stable one; None where nobody can tell."""
        at = self.starts.get(each)
        if at is None or marks is None or not self.fits:
            return None
        if at > marks.high and self.reason is not None:  # the log was cut
            return None
        return behind(self.starts, {each: marks})


@dataclass(frozen=True)
class Told:
    """What Kafka told of a topic; a text says why it did not.

    ``firsts`` are timestamps of first records, see ``AskTopic.first_timestamps``.
    """

    marks: Mapping[TopicPartition, Watermarks] | str
    retention: Retention | str
    firsts: Mapping[PartitionOffset, int | None] | str
    now_ms: float


def standing(
    asked: Answer,
    store: LedgerStore,
    ledger: LedgerSnapshot | RivermouthError,
    kafka: AskKafka,
    now_s: float,
) -> Standing:
    """Where the next run would go on; where it would not, what the ledger holds. Never raises."""
    pipeline, answer = asked.pipeline, asked.facts
    if isinstance(ledger, RivermouthError):
        return Standing(pipeline, str(ledger))
    try:
        found = assessed(pipeline, store, ledger, answer, kafka, now_s)
    except Exception as fault:  # a defect of ours is one pipeline's, too
        return _of_ledger(pipeline, ledger, answer, str(as_ours(fault, pipeline.name)))
    refusal = found.halt or (answer if isinstance(answer, Fault) else None)
    if refusal is not None:
        return _of_ledger(pipeline, found.ledger, answer, str(refusal))
    newest = found.ledger.newest
    recorded = newest.position if newest is not None else Position()
    # Where a run would record a loss first, it starts behind what the ledger holds.
    starts = Position({**found.starts.offsets, **recorded.offsets})
    return Standing(pipeline, None, starts, recorded)


def _of_ledger(
    pipeline: Pipeline, ledger: LedgerSnapshot, answer: KafkaFacts | Fault, reason: str
) -> Standing:
    newest = ledger.newest
    if newest is None:
        return Standing(pipeline, reason)
    if isinstance(answer, Fault):
        return Standing(pipeline, reason, newest.position, newest.position)
    ids = ((at, newest.topics.get(topic, "")) for topic, at in answer.topics.items())
    fits = answer.cluster == newest.cluster and not any(differ(*each) for each in ids)
    starts = Position(next_offsets(newest.position, answer, newest.assigned))
    return Standing(pipeline, reason, starts, newest.position, fits)


def next_records(
    standings: list[Standing], marks: Mapping[TopicPartition, Watermarks]
) -> set[PartitionOffset]:
    """The offsets at which the next records wait, without those that Kafka has deleted."""
    return {
        (each, at)
        for found in standings
        for each in marks
        if (at := found.starts.get(each)) is not None
        and at >= marks[each].low
        and found.lag(each, marks[each])
    }


def reader(found: Standing, partitions: list[TopicPartition], told: Told) -> Reader:
    """What the report says of a pipeline, in those of the ``partitions`` that it reads."""
    has = found.pipeline.source.topics.has
    ours = [each for each in partitions if has(each.topic, each.partition)]
    readings = [_reading(found, each, told) for each in ours]
    return Reader(found.pipeline.name, str(found.pipeline.target.table), found.reason, readings)


def _reading(found: Standing, each: TopicPartition, told: Told) -> Reading:
    position = found.starts.get(each)
    marks = None if isinstance(told.marks, str) else told.marks.get(each)
    lag = found.lag(each, marks)
    recorded = found.recorded.get(each) is not None
    left = _left(found, each, marks, lag, told)
    return Reading(each.partition, position, recorded, lag, left)


def _left(
    found: Standing, each: TopicPartition, marks: Watermarks | None, lag: int | None, told: Told
) -> TimeLeft:
    at = found.starts.get(each)
    if at is None or marks is None or lag is None:
        why = told.marks if isinstance(told.marks, str) else found.reason
        return unknown(why or "the partition was added just now")
    if at < marks.low:
        return gone(at, marks.low)
    if lag == 0:
        return NOTHING_WAITS
    if isinstance(told.firsts, str):
        return unknown(told.firsts)
    if (each, at) not in told.firsts:
        return unknown("no record was read there in time")
    stamp = told.firsts[each, at]
    if stamp is None:
        return TimeLeft(Outlook.NOTHING_WAITS, _NO_RECORD)
    if isinstance(told.retention, str):
        return TimeLeft(Outlook.UNKNOWN, told.retention, record_ms=stamp)
    return time_left(stamp, told.retention, told.now_ms)
