"""Counting the rows of offset ranges in data files of an append table.

An entry of a clean append commit does not know its counts beforehand; its data files do.
Reads only ``_kafka``'s topic, partition and offset, file by file, so memory stays bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rivermouth.chain import Recorded
from rivermouth.delta import DeltaLog
from rivermouth.ledger import RowCounts
from rivermouth.offsets import OffsetRange, TopicPartition

_COORDINATES = ["_kafka.topic", "_kafka.partition", "_kafka.offset"]


def with_rows(log: DeltaLog, recorded: Sequence[Recorded]) -> list[Recorded]:
    """The same entries, each with its ``rows``.

    Counted in the files that the commits added; where VACUUM has taken one of them, in
    the whole table as it is now, whose rows still say where they came from.
    """
    unknown = [each for each in recorded if each.entry.rows is None]
    files = [file for each in unknown for file in log.added_files(each.version)]
    if not all(file.exists() for file in files):
        files = log.files()
    ranges = [one for each in unknown for one in each.entry.ranges]
    counts = dict(zip(ranges, count_rows(files, ranges), strict=True))
    return [_filled(each, counts) for each in recorded]


def _filled(recorded: Recorded, counts: Mapping[OffsetRange, RowCounts]) -> Recorded:
    entry = recorded.entry
    if entry.rows is not None:
        return recorded
    return replace(
        recorded, entry=replace(entry, rows=tuple(counts[each] for each in entry.ranges))
    )


def count_rows(files: Iterable[Path], ranges: Sequence[OffsetRange]) -> tuple[RowCounts, ...]:
    """Rows of each range among ``files``, as applied records. Ranges must not overlap."""
    found: Counter[OffsetRange] = Counter()
    by_partition: dict[TopicPartition, list[OffsetRange]] = {}
    for each in sorted(each for each in ranges if each.span):
        by_partition.setdefault(each.topic_partition, []).append(each)
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=1 << 18, columns=_COORDINATES):
                kafka = pa.table(batch.column("_kafka").flatten(), ["topic", "partition", "offset"])
                _count_batch(kafka, by_partition, found)
    return tuple(RowCounts(found[each], 0) for each in ranges)


def _count_batch(
    kafka: pa.Table,
    by_partition: Mapping[TopicPartition, Sequence[OffsetRange]],
    found: Counter[OffsetRange],
) -> None:
    pairs = kafka.group_by(["topic", "partition"]).aggregate([])
    for pair in pairs.to_pylist():
        each = TopicPartition(pair["topic"], pair["partition"])
        ranges = by_partition.get(each, ())
        if not ranges:
            continue
        here = pc.and_(
            pc.equal(kafka["topic"], each.topic), pc.equal(kafka["partition"], each.partition)
        )
        offsets = np.sort(kafka["offset"].filter(here).to_numpy())
        starts = np.searchsorted(offsets, [one.from_offset for one in ranges])
        ends = np.searchsorted(offsets, [one.until_offset for one in ranges])
        for one, start, end in zip(ranges, starts, ends, strict=True):
            found[one] += int(end - start)
