"""The ranges that a pipeline has recorded: those of its ledger entries that are in effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Pipeline
from rivermouth.errors import LedgerBroken, RangesRefused
from rivermouth.kafka.asked import zoned
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.history import History
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.replay import replay
from rivermouth.reading.asked import configured
from rivermouth.warehouse.end_of_log import end_of_log
from rivermouth.warehouse.folder.ledger import folder_ledger
from rivermouth.warehouse.ports import LedgerLog

if TYPE_CHECKING:  # the log of a folder is read without Spark
    from pyspark.sql import SparkSession

Bound = int | datetime | None
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
    since: Bound = None,
    until: Bound = None,
    *,
    spark: SparkSession | None = None,
) -> tuple[RecordedRanges, ...]:
    """The ledger entries in effect from ``since`` to before ``until``, in the order of sequence.

    A bound is the sequence of an entry, or the time of a commit with its zone. Without ``since``
    they begin with the first entry that the table's log still holds. Entries that were rolled back
    are not among them. There are none before the first run. Tables in a folder are read without
    Spark, those in a catalog through ``spark``. With a sequence as ``since`` the log is read back
    only so far, else all of it.

    Raises RangesRefused for a pipeline that is not configured, bounds that make no sense, entries
    that the log no longer holds, and a catalog without ``spark``; LedgerBroken and TableUndone
    where nobody can tell which entries are in effect; LogUnreadable.
    """
    chosen = configured(config, pipeline)
    _check_bounds(since, until)
    return recorded_in(_log(config, chosen, spark), chosen, since, until)


def recorded_in(
    log: LedgerLog, pipeline: Pipeline, since: Bound = None, until: Bound = None
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
        raise next(iter(history.faults), _untold(where))
    if since is not None and history.first:  # log clean-up took earlier commits
        _check_held(where, entries[0] if entries else None, since)
    effective = history.effective_sequences()
    return tuple(
        _value(each)
        for each in entries
        if each.entry.sequence in effective
        and (since is None or not _is_before(each, since))
        and (until is None or _is_before(each, until))
    )


def _log(config: Config, pipeline: Pipeline, spark: SparkSession | None) -> LedgerLog:
    if not isinstance(config.warehouse, Catalog):
        return folder_ledger(config.folder, pipeline).log
    if spark is None:
        raise RangesRefused(
            "a ledger in a catalog is read through Spark",
            where=f"catalog {config.warehouse.catalog}",
            expected="a session",
            remedy="Pass it: rivermouth.ranges(config, pipeline, spark=spark)",
        )
    from rivermouth.warehouse.warehouse import warehouse_of

    return warehouse_of(config, spark).ledger(pipeline).log


def _check_bounds(since: Bound, until: Bound) -> None:
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


def _untold(where: str) -> LedgerBroken:
    return LedgerBroken("nobody can tell which entries are in effect", where=where)


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
