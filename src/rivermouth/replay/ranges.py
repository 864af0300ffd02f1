"""Offset ranges: those that a pipeline has recorded, and those between two times.

A record of a range is there, was deleted, or is not written yet: Kafka's facts tell which of the
three holds for the ends of a range. What lies between them only reading tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Pipeline, Secrets, unresolved
from rivermouth.config.problems import closest
from rivermouth.errors import (
    LedgerBroken,
    OtherCluster,
    RangesRefused,
    RetentionLost,
    TopicRecreated,
)
from rivermouth.kafka.topics import check_topics, record_time, zoned
from rivermouth.operate.facts import connected
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.history import History
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import OffsetRange, TopicPartition, Watermarks
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.lake.offsets import ledger_of
from rivermouth.warehouse.ledger import end_of_log
from rivermouth.warehouse.ports import LedgerLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_NAMED = 5
"""So many ranges are named in a message."""


def configured(config: Config, pipeline: str) -> Pipeline:
    """The pipeline of that name. Raises RangesRefused."""
    found = config.pipelines.get(pipeline)
    if found is None:
        guess = closest(pipeline, config.pipelines)
        raise RangesRefused(
            f'there is no pipeline "{pipeline}"',
            where=str(config.path),
            expected=", ".join(config.pipelines),
            remedy=f'Did you mean "{guess}"?' if guess else "",
        )
    return found


def disjoint(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The ranges that hold an offset, in order. Raises RangesRefused where two of them overlap."""
    found = sorted(each for each in ranges if each.span)
    twice = [
        f"{one} and {other}"
        for one, other in pairwise(found)
        if one.topic_partition == other.topic_partition and other.from_offset < one.until_offset
    ]
    if twice:
        raise RangesRefused(
            "ranges overlap, so records would come twice",
            found=_listed(twice),
            remedy="Give each offset once",
        )
    return tuple(found)


def merged(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Ordered ranges, where one ends at the start of the next made one."""
    found: list[OffsetRange] = []
    for each in ranges:
        last = found[-1] if found else None
        if (
            last is not None
            and last.topic_partition == each.topic_partition
            and last.until_offset == each.from_offset
        ):
            found[-1] = OffsetRange(each.topic_partition, last.from_offset, each.until_offset)
        else:
            found.append(each)
    return tuple(found)


def one_per_partition(ranges: Iterable[OffsetRange]) -> tuple[tuple[OffsetRange, ...], ...]:
    """The ranges in as few parts as possible, each with one range of a partition at most."""
    parts: list[list[OffsetRange]] = []
    seen = Counter[object]()
    for each in ranges:
        number = seen[each.topic_partition]
        seen[each.topic_partition] += 1
        if number == len(parts):
            parts.append([])
        parts[number].append(each)
    return tuple(map(tuple, parts))


def check_written(ranges: Sequence[OffsetRange], facts: KafkaFacts) -> None:
    """Raise RangesRefused for ranges whose partition, or whose end, is not there."""
    marks = facts.watermarks
    nowhere = sorted({str(it.topic_partition) for it in ranges if it.topic_partition not in marks})
    if nowhere:
        raise RangesRefused(
            "a partition does not exist",
            expected=", ".join(f"{topic}: {_count(topic, facts)}" for topic in facts.topics),
            found=_listed(nowhere),
            remedy="Check the cluster and the number of the partition",
        )
    beyond = [each for each in ranges if each.until_offset > marks[each.topic_partition].high]
    if beyond:
        raise RangesRefused(
            "ranges end after the last record that may be read",
            expected="ends of logs that are there",
            found=_listed(_beyond(each, facts) for each in beyond),
            remedy="Read up to that end; a log that was longer was cut or created again",
        )


def check_kept(ranges: Sequence[OffsetRange], facts: KafkaFacts) -> None:
    """Raise RetentionLost for ranges that begin before the first offset that Kafka holds."""
    gone = [(each, facts.watermarks[each.topic_partition].low) for each in ranges]
    gone = [(each, low) for each, low in gone if each.from_offset < low]
    if gone:
        raise RetentionLost(
            "Kafka has deleted offsets of the ranges",
            expected="logs that start where the ranges do, or before",
            found=_listed(f"{each} in a log that starts at {low}" for each, low in gone),
            remedy="Read from that start on; rivermouth.readable says what is left",
        )


def check_same_source(cluster: str, topics: Iterable[tuple[str, str]], facts: KafkaFacts) -> None:
    """Raise OtherCluster or TopicRecreated where recorded offsets mean other records now.

    ``topics`` are names and recorded ids.
    """
    if cluster != facts.cluster:
        raise OtherCluster(
            "the ranges were recorded in another cluster",
            expected=f"cluster {cluster}",
            found=f"cluster {facts.cluster}",
            remedy="Point kafka.bootstrap.servers to that cluster",
        )
    for topic, recorded in topics:
        now = facts.topics[topic]
        if differ(recorded, now):
            raise TopicRecreated(
                f"topic {topic} was created again since the ranges were recorded",
                expected=f"topic id {recorded}",
                found=f"topic id {now}",
                remedy="Its offsets mean other records now; those of then are gone",
            )


def _beyond(each: OffsetRange, facts: KafkaFacts) -> str:
    held_back = facts.held_back.get(each.topic_partition, 0)
    open_too = f", with {held_back:,} offsets behind open transactions" if held_back else ""
    return f"{each} in a log that ends at {facts.watermarks[each.topic_partition].high}{open_too}"


def _count(topic: str, facts: KafkaFacts) -> str:
    numbers = [each.partition for each in facts.watermarks if each.topic == topic]
    return f"0 to {max(numbers)}" if numbers else "none"


def _listed(texts: Iterable[str]) -> str:
    found = [*texts]
    more = [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    return "; ".join([*found[:_NAMED], *more])


EntryBound = int | datetime | None
"""The sequence of an entry, or the time of a commit; None: no bound."""


@dataclass(frozen=True)
class RecordedRanges:
    """What one ledger entry says of the offsets that its commit covers.

    ``committed_at`` is the time of the commit, in UTC. ``ranges`` were read by it, one for each
    partition, in order; empty ones say where a partition began. ``lost`` had been deleted in Kafka
    before they were read. ``topics`` are the ids of the topics, by name, in the cluster with the id
    ``cluster``: the offsets mean nothing elsewhere.
    """

    sequence: int
    commit: str
    committed_at: datetime
    ranges: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...]
    cluster: str
    topics: Mapping[str, str]


def ranges(
    config: Config,
    pipeline: str,
    since: EntryBound = None,
    until: EntryBound = None,
    *,
    spark: SparkSession | None = None,
    secrets: Secrets = unresolved,
) -> tuple[RecordedRanges, ...]:
    """The ledger entries in effect from ``since`` to before ``until``, in the order of sequence.

    A bound is the sequence of an entry, or the time of a commit with its zone. Without ``since``
    they begin with the first entry that the table's log still holds. Entries that were rolled back
    are not among them. There are none before the first run. Tables in files are read without Spark,
    those in a catalog through ``spark``; ``secrets`` reads what the keys of a bucket name. With a
    sequence as ``since`` the log is read back only so far, else all of it.

    Raises RangesRefused for a pipeline that is not configured, bounds that make no sense, entries
    that the log no longer holds, and a catalog without ``spark``; LedgerBroken and TableUndone
    where nobody can tell which entries are in effect; LogUnreadable.
    """
    chosen = configured(config, pipeline)
    _check_bounds(since, until)
    return recorded_in(_log(config, chosen, spark, secrets), chosen, since, until)


def recorded_in(
    log: LedgerLog, pipeline: Pipeline, since: EntryBound = None, until: EntryBound = None
) -> tuple[RecordedRanges, ...]:
    """The same from the log of the pipeline's table."""
    name = pipeline.ledger_name
    commits: Iterable[CommitRecord]
    if isinstance(since, int):
        commits = end_of_log(log.commits_backwards(), name, max(since, 1) - 1)
    else:
        commits = log.commits()
    where = f"{pipeline.name} {pipeline.target.table}"
    history, entries = replay(History(name, where), commits)
    if history.broken:
        raise history.broken[0]
    if history.effective is None:
        untold = LedgerBroken("nobody can tell which entries are in effect", where=where)
        raise next(iter(history.faults), untold)
    if since is not None and history.first:  # log clean-up took earlier commits
        _check_held(where, entries[0] if entries else None, since)
    effective = history.effective_sequences(entries)
    return tuple(
        _value(each)
        for each in entries
        if each.entry.sequence in effective
        and (since is None or not _is_before(each, since))
        and (until is None or _is_before(each, until))
    )


def _log(
    config: Config, pipeline: Pipeline, spark: SparkSession | None, secrets: Secrets
) -> LedgerLog:
    if not isinstance(config.warehouse, Catalog):
        return ledger_of(Lake.of(config, secrets), pipeline).log
    if spark is None:
        raise RangesRefused(
            "a ledger in a catalog is read through Spark",
            where=f"catalog {config.warehouse.catalog}",
            expected="a session",
            remedy="Pass it: rivermouth.ranges(config, pipeline, spark=spark)",
        )
    from rivermouth.warehouse.warehouse import warehouse_of

    return warehouse_of(config, spark).ledger(pipeline).log


def _check_bounds(since: EntryBound, until: EntryBound) -> None:
    times = [zoned(each) for each in (since, until) if isinstance(each, datetime)]
    sequences = [each for each in (since, until) if isinstance(each, int)]
    if times != sorted(times) or sequences != sorted(sequences):
        raise RangesRefused("since comes after until", found=f"since {since}, until {until}")


def _is_before(each: Recorded, bound: int | datetime) -> bool:
    if isinstance(bound, int):
        return each.entry.sequence < bound
    return _at(each) < bound


def _check_held(where: str, first: Recorded | None, since: int | datetime) -> None:
    """Refuse what lies before the first entry in a log of which clean-up took the beginning."""
    if first is not None and (
        first.entry.sequence == 1 or first.entry.sequence == since or _is_before(first, since)
    ):
        return
    held = "no entry" if first is None else f"entry {first.entry.sequence}, of {_at(first)}"
    raise RangesRefused(
        "log clean-up took entries of the table's log",
        where=where,
        expected=f"a log that holds the entries since {since}",
        found=f"{held} as the first",
        remedy="Begin later; rivermouth.offsets keeps the ranges of earlier entries",
    )


def _value(each: Recorded) -> RecordedRanges:
    entry = each.entry
    return RecordedRanges(
        sequence=entry.sequence,
        commit=entry.commit,
        committed_at=_at(each),
        ranges=tuple(one for one in entry.ranges if one not in entry.lost),
        lost=entry.lost,
        cluster=entry.cluster,
        topics=dict(entry.topics),
    )


def _at(each: Recorded) -> datetime:
    return datetime.fromtimestamp(each.timestamp_ms / 1000, timezone.utc)


FirstOffsets = Mapping[TopicPartition, int | None]
"""The offset of the first record of each partition at a time, or after it; None: there is none."""


def ranges_between(
    config: Config,
    topic: str,
    begin: datetime,
    end: datetime | None = None,
    *,
    secrets: Secrets = unresolved,
) -> tuple[OffsetRange, ...]:
    """From the first record at ``begin`` or after it to the first at ``end`` or after it.

    One range for each partition of the topic, in order; an empty one where no record is between.
    Without ``end``, or where no record is that young, a range ends at the last stable offset: where
    a ``read_committed`` reader ends now. The times are those of the records, and have a zone. Where
    they are not in order in a partition, a range also holds records of other times. What retention
    has deleted is in no range: nobody can tell which times it had.

    Raises RangesRefused for a time without a zone or before 1970, for an ``end`` before ``begin``,
    and for a name that no topic can have; TopicMissing, and other errors of Kafka as SourceError.
    """
    check_topics([topic])
    record_time(begin)
    if end is not None and record_time(end) < begin:
        found = f"{begin.isoformat()} to {end.isoformat()}"
        raise RangesRefused("the end is before the begin", found=found)
    kafka = connected(config, secrets)
    marks = kafka.facts([topic]).watermarks
    begins = kafka.offsets_at(dict.fromkeys(marks, begin))
    # Later than the begins: what is deleted in between moves an end forward, never a begin.
    ends = kafka.offsets_at(dict.fromkeys(marks, end)) if end is not None else {}
    return spans(marks, begins, ends)


def spans(
    marks: Mapping[TopicPartition, Watermarks], begins: FirstOffsets, ends: FirstOffsets
) -> tuple[OffsetRange, ...]:
    """The ranges of the partitions in ``marks``; none ends after the last stable offset."""
    return tuple(
        OffsetRange(each, _offset(begins.get(each), mark), _offset(ends.get(each), mark))
        for each, mark in sorted(marks.items())
    )


def _offset(found: int | None, mark: Watermarks) -> int:
    # What an open transaction holds back may not be read yet.
    return mark.high if found is None else min(found, mark.high)
