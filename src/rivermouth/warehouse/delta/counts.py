"""How many records of each range are in the data files of a table, read from their ``_kafka``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ArrowException

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.storage.store import STORE_FAULTS, Store
from rivermouth.warehouse.delta.log import DeltaLog

Integers = npt.NDArray[np.integer[Any]]
_COORDINATES = ["_kafka.topic", "_kafka.partition", "_kafka.offset"]


def with_counts(log: DeltaLog, entries: Sequence[Recorded]) -> list[Recorded]:
    """The same entries with their counts.

    Where an entry has none, they are counted in the files that its commit added; where VACUUM has
    taken one of them, in the whole table as it is now, whose rows still say where they came from.
    Raises ProjectionFailed where these cannot be read either.
    """
    unknown = [each for each in entries if each.entry.rows is None]
    try:
        counts = _all_counts(log, unknown)
    except (*STORE_FAULTS, ArrowException) as fault:
        raise ProjectionFailed(
            "the commits stand, but the rows of their files cannot be counted",
            where=log.store.where,
            found=str(fault),
            remedy="See with 'rivermouth verify' what the table holds; then run again",
        ) from fault
    return [
        each.counted(counts[each.version]) if each.entry.rows is None else each for each in entries
    ]


def _all_counts(log: DeltaLog, entries: Sequence[Recorded]) -> dict[int, Counts]:
    """The counts of each entry, by the version of its commit.

    Each in files of its own while they are there: since an accepted change of the source, rows of
    several entries may have the same coordinates.
    """
    store = log.store
    added = [[each.path for each in log.added(one.version)] for one in entries]
    there = [all(map(store.has, files)) for files in added]
    pairs = [*zip(entries, added, there, strict=True)]
    left = [one for each, _, here in pairs if not here for one in each.entry.ranges]
    whole = _files(store) if left else []
    table = dict(zip(left, count_rows(store, whole, left), strict=True))
    return {
        each.version: count_rows(store, files, each.entry.ranges)
        if here
        else tuple(RowCounts(min(table[one].applied, one.span), 0) for one in each.entry.ranges)
        for each, files, here in pairs
    }


def _files(store: Store) -> list[str]:
    """The data files of the table now."""
    log = DeltaLog(store, files=True)
    log.follow()
    return [*log.state.current]


def count_rows(
    store: Store, files: Iterable[str], ranges: Sequence[OffsetRange]
) -> tuple[RowCounts, ...]:
    """Rows of each range among ``files``, as applied records. Ranges must not overlap."""
    found: Counter[OffsetRange] = Counter()
    by_partition: dict[TopicPartition, list[OffsetRange]] = {}
    for each in sorted(each for each in ranges if each.span):
        by_partition.setdefault(each.topic_partition, []).append(each)
    for file in files:
        with pq.ParquetFile(store.opened(file)) as parquet:
            for batch in parquet.iter_batches(batch_size=1 << 18, columns=_COORDINATES):
                for place, offsets in _by_partition(batch):
                    its_ranges = by_partition.get(place, [])
                    starts = np.searchsorted(offsets, [each.from_offset for each in its_ranges])
                    ends = np.searchsorted(offsets, [each.until_offset for each in its_ranges])
                    found.update(dict(zip(its_ranges, (ends - starts).tolist(), strict=True)))
    return tuple(RowCounts(found[each], 0) for each in ranges)


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Integers]]:
    """The offsets of each partition that has rows in the batch, in order.

    The rows are sorted once for all partitions: looking for each of them would take as many passes.
    """
    topics, partitions, offsets = batch.column("_kafka").flatten()
    topics = topics.dictionary_encode()
    places = topics.indices.to_numpy().astype(np.int64) << 32 | partitions.to_numpy()
    order = np.lexsort((offsets.to_numpy(), places))
    places, ordered = places[order], offsets.to_numpy()[order]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    for start, here in zip(starts, np.split(ordered, starts[1:]), strict=True):
        topic = topics.dictionary[int(places[start]) >> 32].as_py()
        yield TopicPartition(topic, int(places[start]) & 0xFFFFFFFF), here
