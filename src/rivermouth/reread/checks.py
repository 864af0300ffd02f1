"""What stands against a replay in place: another outcome than that of the first reading. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rivermouth.config import Pipeline
from rivermouth.errors import ReplayRefused
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.reapplied import WholeEntries

ELSEWHERE = "Replay into another table: --into SCHEMA.TABLE"


def check_alone(where: str, own: Collection[str], writers: Iterable[str]) -> None:
    """Raise ReplayRefused where others than ``own`` are among the writers of a table."""
    others = sorted({*writers} - {*own})
    if others:
        raise ReplayRefused(
            "other pipelines have written the table, too",
            where=where,
            expected="one pipeline",
            found=", ".join(others),
            remedy=ELSEWHERE,
        )


def check_counts(where: str, found: WholeEntries, counts: Counts) -> None:
    """Raise ReplayRefused where records decode differently than when they were read.

    There may be fewer of each kind: compaction has removed them.
    """
    for each, now in zip(found.ranges, counts, strict=True):
        then = None if found.counts is None else found.counts.get(each.topic_partition)
        if then is not None and not _none_more(now, then):
            raise ReplayRefused(
                f"records of {each} decode differently than when they were read",
                where=where,
                expected=f"at most {then.applied:,} good and {then.quarantined:,} bad",
                found=f"{now.applied:,} good and {now.quarantined:,} bad",
                remedy="Put the format and its settings back; or replay into another table:"
                " --into SCHEMA.TABLE",
            )


def check_all_there(where: str, found: WholeEntries, counts: Counts) -> None:
    """Raise ReplayRefused unless every record that was read is known to be there still.

    For a shape in which the first record of a key decides: compaction may have removed it.
    """
    if found.counts is None:
        raise ReplayRefused(
            "nobody can tell whether all records are there",
            where=where,
            expected="entries that count their records",
            found=f"some without counts, from entry {found.since} on",
            remedy=ELSEWHERE,
        )
    for each, now in zip(found.ranges, counts, strict=True):
        then = found.counts[each.topic_partition]
        if now != then:
            raise ReplayRefused(
                f"records of {each} are gone, and each may have been the first of its key",
                where=where,
                expected=f"{then.applied:,} good and {then.quarantined:,} bad",
                found=f"{now.applied:,} good and {now.quarantined:,} bad: is the topic compacted?",
                remedy=ELSEWHERE,
            )


def _none_more(now: RowCounts, then: RowCounts) -> bool:
    return now.applied <= then.applied and now.quarantined <= then.quarantined


def check_inserts(where: str, pipeline: Pipeline, found: WholeEntries, inserted: int) -> None:
    """Raise ReplayRefused where a row to insert may not be the newest by ``order_by``.

    A record that was read earlier may rank higher; of a row that is there the table tells it.
    """
    if inserted and pipeline.target.order_by and not found.earliest:
        raise ReplayRefused(
            f"{inserted:,} rows are missing, and an earlier record may be newer by order_by",
            where=where,
            expected="a replay of all that was ever read",
            found=f"one since entry {found.since}",
            remedy="Write --from earliest, if all can still be read; or replay into another table:"
            " --into SCHEMA.TABLE",
        )
