"""Which entries a replay in place applies once more, and the entry that says so. Pure.

A replay in place takes whole entries, from one of them to the newest. What the table holds of a key
follows from its records in the order of the entries. So a part of them alone is not enough: a
tombstone, or a newer record of the key in another partition, may be in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rivermouth.config import Pipeline
from rivermouth.errors import ReplayRefused
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.drafts import still_draft
from rivermouth.protocol.entry import Draft, Entry, RowCounts
from rivermouth.protocol.history import History, rests_on
from rivermouth.protocol.offsets import OffsetRange, TopicPartition, Watermarks


@dataclass(frozen=True)
class WholeEntries:
    """What a replay in place reads: all that the entries from ``since`` to the newest cover.

    ``ranges`` has one range for each partition, which ends at the position; ``of_entries`` has the
    same offsets by the sequence of their entry. ``counts`` are the records of each partition as the
    entries count them; None where one of them does not. ``earliest``: no earlier entry can be read
    once more.
    """

    since: int
    ranges: tuple[OffsetRange, ...]
    of_entries: tuple[tuple[int, OffsetRange], ...]
    counts: Mapping[TopicPartition, RowCounts] | None
    earliest: bool


def recorded_begins(entries: Sequence[Recorded]) -> dict[TopicPartition, int]:
    """The first offset of each partition that the entries cover."""
    begins: dict[TopicPartition, int] = {}
    for each in _ranges(entries):
        begins.setdefault(each.topic_partition, each.from_offset)
    return begins


def whole_entries(
    entries: Sequence[Recorded],
    pipeline: Pipeline,
    watermarks: Mapping[TopicPartition, Watermarks],
    asked: Sequence[OffsetRange] | None,
) -> WholeEntries:
    """The entries to apply once more so that the records of ``asked`` have their effect.

    ``entries`` are those in effect, in order. ``asked`` None: from the first one on that can be
    read. Raises ReplayRefused where an entry between cannot be read as it was.
    """
    where = f"{pipeline.name} {pipeline.target.table}"
    first, why = _first_readable(entries, pipeline, watermarks)
    start = first if asked is None else _first_asked(entries, asked, where)
    if start is not None and start < first:
        raise ReplayRefused(
            f"the entries from {entries[start].entry.sequence} on cannot be applied once more",
            where=where,
            found=why,
            remedy="Begin as early as can be: --from earliest; or replay into another table:"
            " --into SCHEMA.TABLE",
        )
    taken = _covering(entries[start:])
    if start is None or not taken:
        raise _nothing(where, why)
    return WholeEntries(
        since=taken[0].entry.sequence,
        ranges=_joined(taken),
        of_entries=tuple(
            (each.entry.sequence, one) for each in taken for one in each.entry.ranges if one.span
        ),
        counts=_counted(taken),
        earliest=rests_on(entries[0].entry) == 0 and not _covering(entries[:start]),
    )


def all_entries(
    entries: Sequence[Recorded],
    pipeline: Pipeline,
    watermarks: Mapping[TopicPartition, Watermarks],
    asked: Sequence[OffsetRange] | None,
) -> WholeEntries:
    """All entries that cover an offset, for a shape in which the first record of a key decides.

    ``asked`` says no more than that there is something to do. Raises ReplayRefused where one of
    them cannot be read as it was, or is not in the log any more.
    """
    where = f"{pipeline.name} {pipeline.target.table}"
    if asked is not None and _first_asked(entries, asked, where) is None:
        raise _nothing(where)
    found = whole_entries(entries, pipeline, watermarks, None)
    if not found.earliest:
        _, why = _first_readable(entries, pipeline, watermarks)
        raise ReplayRefused(
            "not all that the pipeline has read can be applied once more",
            where=where,
            expected="all entries from the first one on: each may have read the first record of"
            " a key",
            found=why or f"a log that begins with entry {entries[0].entry.sequence}",
            remedy="Replay into another table: --into SCHEMA.TABLE",
        )
    return found


def _nothing(where: str, why: str = "") -> ReplayRefused:
    return ReplayRefused(
        "there is nothing to replay",
        where=where,
        expected="records that the pipeline has read",
        found=why or "none in these ranges",
        remedy="Begin earlier; or replay into another table: --into SCHEMA.TABLE",
    )


def replay_draft(history: History, newest: Entry, table: str, found: WholeEntries) -> Draft:
    """The entry that says which ranges were applied once more, and moves no offset."""
    return replace(still_draft(history, newest, table), replayed=found.ranges)


def _first_asked(
    entries: Sequence[Recorded], asked: Sequence[OffsetRange], where: str
) -> int | None:
    """The index of the first entry that covers a record of the ranges; None: none does."""
    begins = recorded_begins(entries)
    for each in asked:
        begin = begins.get(each.topic_partition)
        if each.span and (begin is None or each.from_offset < begin):
            raise ReplayRefused(
                f"{each} was not read by an entry that the table's log holds",
                where=where,
                expected="offsets that the pipeline has read",
                found="none of the partition" if begin is None else f"offsets from {begin} on",
                remedy="Begin there; or replay into another table: --into SCHEMA.TABLE",
            )
    starts = {each.topic_partition: each.from_offset for each in asked if each.span}
    for index, recorded in enumerate(entries):
        for each in recorded.entry.ranges:
            start = starts.get(each.topic_partition)
            if start is not None and each.span and start < each.until_offset:
                return index
    return None


def _first_readable(
    entries: Sequence[Recorded], pipeline: Pipeline, watermarks: Mapping[TopicPartition, Watermarks]
) -> tuple[int, str]:
    """The index of the first entry from which on all can be read as it was, and why not before."""
    deleted = max((each.version for one in entries for each in one.entry.deletes), default=-1)
    for index in range(len(entries) - 1, -1, -1):
        why = _unlike(entries[index], pipeline, watermarks, deleted)
        if why:
            return index + 1, why
    return 0, ""


def _unlike(
    recorded: Recorded,
    pipeline: Pipeline,
    watermarks: Mapping[TopicPartition, Watermarks],
    deleted: int,
) -> str:
    """Why the records of an entry cannot be applied as they were; empty where they can."""
    entry = recorded.entry
    what = f"entry {entry.sequence}"
    if entry.changes is not None:
        return f"{what} accepts a change of the source"
    covered = [each for each in entry.ranges if each.span]
    if not covered:
        return ""
    if recorded.version < deleted:
        return f"{what} is from before version {deleted}, whose DELETE was accepted"
    if dict(entry.config) != dict(pipeline.identity):
        return f"{what} was written by other settings than there are now"
    if entry.columns != tuple((each.name, each.type) for each in pipeline.columns):
        return f"{what} was decoded by other columns than there are now"
    if dict(entry.decoder) != pipeline.decoder:
        return f"{what} was decoded by another version, or other settings, than there are now"
    if entry.metadata != pipeline.source.metadata:
        return f"{what} was written with another source.metadata than there is now"
    for each in covered:
        kept = watermarks.get(each.topic_partition)
        if kept is None:
            return f"{what} covers {each.topic_partition}, which is not read any more"
        if each.from_offset < kept.low:
            return f"{what} covers {each}, and Kafka holds offsets from {kept.low} on"
    return ""


def _covering(entries: Sequence[Recorded]) -> list[Recorded]:
    """The entries that cover an offset."""
    return [each for each in entries if any(one.span for one in each.entry.ranges)]


def _ranges(entries: Sequence[Recorded]) -> list[OffsetRange]:
    return [one for each in entries for one in each.entry.ranges]


def _joined(entries: Sequence[Recorded]) -> tuple[OffsetRange, ...]:
    """One range for each partition. The ranges of entries in effect follow on each other."""
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for each in _ranges(entries):
        if each.span:
            starts.setdefault(each.topic_partition, each.from_offset)
            ends[each.topic_partition] = each.until_offset
    return tuple(OffsetRange(each, start, ends[each]) for each, start in sorted(starts.items()))


def _counted(entries: Sequence[Recorded]) -> dict[TopicPartition, RowCounts] | None:
    """The records of each partition, as the entries count them; None where one does not."""
    found: dict[TopicPartition, RowCounts] = {}
    for each in entries:
        if each.entry.rows is None:
            return None
        for one, rows in zip(each.entry.ranges, each.entry.rows, strict=True):
            known = found.get(one.topic_partition, RowCounts(0, 0))
            found[one.topic_partition] = RowCounts(
                known.applied + rows.applied,
                known.quarantined + rows.quarantined,
                known.skipped + rows.skipped,
            )
    return found
