"""Counts of the ranges of a batch, from what its tasks counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rivermouth.errors import BatchFailed
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.files.file import DataFile, Places


def records_of(files: Iterable[DataFile]) -> Places:
    """How many records are in the files."""
    found: Counter[tuple[str, int]] = Counter()
    for each in files:
        found.update(each.records)
    return found


def counted_ranges(
    applied: Places, quarantined: Places, ranges: Sequence[OffsetRange], where: str
) -> Counts:
    """The counts of the ranges, in their order. Raises BatchFailed where they cannot be right."""
    counts = []
    for each in ranges:
        place = (each.topic, each.partition)
        counts.append(RowCounts(applied.get(place, 0), quarantined.get(place, 0)))
        number = counts[-1].applied + counts[-1].quarantined
        if number > each.span:
            raise other_records(where, f"{number} of {each}")
    beyond = {*applied, *quarantined} - {(each.topic, each.partition) for each in ranges}
    if beyond:
        raise other_records(where, f"records of {sorted(beyond)}")
    return tuple(counts)


def other_records(where: str, found: str) -> BatchFailed:
    """Kafka has changed what it holds while a batch was read. ``where`` is the pipeline."""
    what = "Kafka gave other records than those of the batch"
    return BatchFailed(what, where=where, expected="at most one for each offset", found=found)
