"""One evaluation of a batch: its records counted, its bad ones noticed, its rows kept.

Most batches have no bad record, and looking first would read every batch twice. So the one pass
*fails* at the first bad one, before anything is committed: where a task decodes it for a fold, or
where Spark evaluates it, by ``refusing``. Only such a batch is decoded again, by all tasks, kept,
counted and split. Whether quarantine is written thus depends on the rows themselves: never on a
metric, which Spark may count twice or lose when it computes a partition again.

Neither grows with the number of ranges: of many, one aggregate counts all.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from rivermouth.formats.arrow import REFUSAL, SKIPPED
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.errors import said
from rivermouth.spark.tables import literal

Made = TypeVar("Made")


@contextmanager
def staged(rows: DataFrame, folder: Path) -> Iterator[DataFrame]:
    """The rows, evaluated once and read from files in ``folder``, which is removed at the end.

    ``folder`` does not exist yet; driver and executors see it by the same path.
    """
    files = f"file:{folder}" if not folder.is_relative_to("/Volumes") else str(folder)
    try:
        rows.write.parquet(files)
        # A file that is gone is an error, whatever the session says: it holds changes.
        strict = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        yield rows.sparkSession.read.schema(rows.schema).options(**strict).parquet(files)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refusing() -> Column:
    """``_kafka`` of a decoded row; evaluating that of a bad one fails the job.

    Not a filter: the optimizer would push it below the decoding and decode twice.
    """
    refusal = F.raise_error(F.lit(REFUSAL))
    return F.when(F.col("code").isNull(), F.col("_kafka")).otherwise(refusal).alias("_kafka")


def refused(fault: Exception) -> bool:
    """Whether a job failed because of a bad record."""
    return REFUSAL in said(fault)


def unless_refused(attempt: Callable[[], Made], split: Callable[[], Made]) -> Made:
    """What ``attempt`` makes; where a bad record has failed it, what ``split`` makes."""
    try:
        return attempt()
    except Exception as fault:
        if not refused(fault):
            raise
    return split()


@contextmanager
def persisted(decoded: DataFrame, folder: Path | None) -> Iterator[DataFrame]:
    """The decoded rows for several reads: in the cache, or in files in ``folder`` if it is given.

    Without it the first action on them evaluates them, by as many tasks as it has.
    """
    if folder is not None:
        with staged(decoded, folder) as files:
            yield files
        return
    cached = decoded.persist()
    try:
        yield cached
    finally:
        cached.unpersist()


_COUNTS = "counts"
_FEW = 16  # ranges; a counter for each of them costs less than the histogram, which boxes numbers


class InlineCounter:
    """Counts the good records of each range while a batch of nothing else passes.

    Each partition has a number. A counter for each of a few, and one histogram of many, counts
    the numbers. The histogram has a bin for each of them, so it is exact.
    """

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self._ranges = ranges
        self._firsts = first_numbers(ranges)
        self._observation = Observation()

    def watched(self, good: DataFrame, **more: Column) -> DataFrame:
        """The same rows, counted when they are evaluated; ``more`` are further aggregates."""
        few = len(self._ranges) <= _FEW
        expression = self._counters() if few else self._histogram()
        # As text: a list of structs is no metric through Spark Connect.
        counts = F.to_json(F.expr(expression)).alias(_COUNTS)
        named = [column.alias(name) for name, column in more.items()]
        return good.observe(self._observation, counts, *named)

    def _counters(self) -> str:
        """Expression for a list of x, the number of a partition, and y, its records."""
        counters: list[str] = []
        for each in self._ranges:
            here = f"_kafka.partition = {each.partition} and _kafka.topic = {literal(each.topic)}"
            number = self._firsts[each.topic] + each.partition
            counters.append(f"named_struct('x', {number}, 'y', count_if({here}))")
        return f"array({', '.join(counters)})"

    def _histogram(self) -> str:
        """Expression for the same list, but for partitions without records."""
        pairs = ", ".join(f"{literal(topic)}, {n}" for topic, n in self._firsts.items())
        number = f"cast(map({pairs})[_kafka.topic] + _kafka.partition as double)"
        return f"histogram_numeric({number}, {len(self._ranges)})"

    def metric(self, name: str) -> int | None:
        """One of the further aggregates; None if Spark has dropped the plan of an empty batch."""
        value: int | None = self._observation.get.get(name)
        return value

    def counts(self, decoded: Callable[[], DataFrame], records: int | None = None) -> Counts:
        """The counts, once the watched rows were evaluated.

        ``records``: how many there were, where somebody knows. They are counted again in
        ``decoded``, by grouping, where the metric cannot be right: Spark drops the plan of an empty
        batch, and what it computes again it may count twice.
        """
        histogram = self._observation.get.get(_COUNTS)
        if histogram is not None:
            found = counts_of(self._ranges, self._firsts, histogram)
            fit = all(n.applied <= each.span for n, each in zip(found, self._ranges, strict=True))
            if fit and records in (None, applied(found)):
                return found
        return grouped_counts(decoded(), self._ranges)


def first_numbers(ranges: Sequence[OffsetRange]) -> Mapping[str, int]:
    """The number of each topic's partition 0; further partitions follow it, without overlaps."""
    sizes: dict[str, int] = {}
    for each in ranges:
        sizes[each.topic] = max(sizes.get(each.topic, 0), each.partition + 1)
    firsts, first = {}, 0
    for topic, size in sizes.items():
        firsts[topic], first = first, first + size
    return firsts


def counts_of(ranges: Sequence[OffsetRange], firsts: Mapping[str, int], histogram: str) -> Counts:
    """The counts of the ranges in a histogram of their partitions' numbers, a list of x and y."""
    found: Counter[int] = Counter()
    for each in json.loads(histogram):
        found[round(each["x"])] += round(each["y"])  # bins that were merged have rounding errors
    return tuple(RowCounts(found[firsts[each.topic] + each.partition], 0) for each in ranges)


def grouped_counts(decoded: DataFrame, ranges: Sequence[OffsetRange]) -> Counts:
    """The records of each range, counted by grouping: exact, whatever Spark computes again."""
    code = F.col("code")
    kinds = {"good": code.isNull(), "bad": is_bad(), "skipped": code == SKIPPED}
    rows = decoded.groupBy("_kafka.topic", "_kafka.partition").agg(
        *(F.count_if(each).alias(name) for name, each in kinds.items())
    )
    found = {(row["topic"], row["partition"]): [*row][2:] for row in rows.collect()}
    nothing = [0] * len(kinds)
    return tuple(RowCounts(*found.get((each.topic, each.partition), nothing)) for each in ranges)


def is_bad() -> Column:
    """Whether a decoded row goes to quarantine; null or false where it does not."""
    return F.col("code") != SKIPPED


def applied(counts: Counts) -> int:
    """Records that took effect, in all ranges."""
    return sum(each.applied for each in counts)


def quarantined(counts: Counts) -> int:
    """Records that went to quarantine, in all ranges."""
    return sum(each.quarantined for each in counts)
