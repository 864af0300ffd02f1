"""Counting the rows of offset ranges in data files of an append table.

An entry of a clean append commit does not know its counts beforehand; its data files do.
Reads only ``_kafka``'s topic, partition and offset, file by file, so memory stays bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyarrow import ArrowException

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.ports import Counted

Integers = npt.NDArray[np.integer[Any]]
_COORDINATES = ["_kafka.topic", "_kafka.partition", "_kafka.offset"]


def with_counts(log: FolderLog, entries: Sequence[Recorded]) -> list[Counted]:
    """The same entries with their counts.

    Where an entry has none, they are counted in the files that its commit added; where VACUUM has
    taken one of them, in the whole table as it is now, whose rows still say where they came from.
    Raises ProjectionFailed where these cannot be read either.
    """
    unknown = [each for each in entries if each.entry.rows is None]
    files = [file for each in unknown for file in log.added_files(each.version)]
    if not all(file.exists() for file in files):
        files = log.files()
    ranges = [one for each in unknown for one in each.entry.ranges]
    try:
        counts = dict(zip(ranges, count_rows(files, ranges), strict=True))
    except (OSError, ArrowException) as fault:
        raise ProjectionFailed(
            "the commits stand, but the rows of their files cannot be counted",
            where=str(log.path),
            found=str(fault),
            remedy="See with 'rivermouth verify' what the table holds; then run again",
        ) from fault
    return [Counted(each, _counts(each, counts)) for each in entries]


def _counts(recorded: Recorded, counts: Mapping[OffsetRange, RowCounts]) -> Counts:
    rows = recorded.entry.rows
    return tuple(counts[each] for each in recorded.entry.ranges) if rows is None else rows


def count_rows(files: Iterable[Path], ranges: Sequence[OffsetRange]) -> tuple[RowCounts, ...]:
    """Rows of each range among ``files``, as applied records. Ranges must not overlap."""
    found: Counter[OffsetRange] = Counter()
    by_partition: dict[TopicPartition, list[OffsetRange]] = {}
    for each in sorted(each for each in ranges if each.span):
        by_partition.setdefault(each.topic_partition, []).append(each)
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=1 << 18, columns=_COORDINATES):
                topics, partitions, offsets = batch.column("_kafka").flatten()
                topics = topics.dictionary_encode()
                known = {name: index for index, name in enumerate(topics.dictionary.to_pylist())}
                rows = _Rows(topics.indices.to_numpy(), partitions.to_numpy(), offsets.to_numpy())
                for place, its_ranges in by_partition.items():
                    if place.topic in known:
                        rows.count(known[place.topic], place.partition, its_ranges, found)
    return tuple(RowCounts(found[each], 0) for each in ranges)


@dataclass(frozen=True)
class _Rows:
    """Coordinates of rows, column by column; topics by their number in a dictionary."""

    topics: Integers
    partitions: Integers
    offsets: Integers

    def count(
        self, topic: int, partition: int, ranges: Sequence[OffsetRange], found: Counter[OffsetRange]
    ) -> None:
        """Add the rows of one partition to ``found``, by range."""
        here = self.offsets[(self.partitions == partition) & (self.topics == topic)]
        if len(ranges) > 1:  # all of them at once, where a table is counted as a whole
            here = np.sort(here)
            starts = np.searchsorted(here, [each.from_offset for each in ranges])
            ends = np.searchsorted(here, [each.until_offset for each in ranges])
            found.update(dict(zip(ranges, (ends - starts).tolist(), strict=True)))
            return
        inside = (here >= ranges[0].from_offset) & (here < ranges[0].until_offset)
        found[ranges[0]] += int(np.count_nonzero(inside))
