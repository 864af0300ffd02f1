"""Counting the records of each range on the way, by ``observe``: without a pass of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange


def counters(ranges: Sequence[OffsetRange]) -> list[Column]:
    """Two aggregates per range over a decoded batch: applied ``a<i>``, quarantined ``q<i>``."""
    code = F.col("code")
    columns: list[Column] = []
    for index, each in enumerate(ranges):
        partition = F.col("_kafka").getField("partition") == each.partition
        here = partition & (F.col("_kafka").getField("topic") == each.topic)
        columns.append(F.count_if(here & code.isNull()).alias(f"a{index}"))
        columns.append(F.count_if(here & code.isNotNull()).alias(f"q{index}"))
    return columns


def counted(ranges: Sequence[OffsetRange], metrics: Mapping[str, int]) -> Counts:
    """The observed counts of each range."""
    numbers = range(len(ranges))
    return tuple(RowCounts(metrics[f"a{each}"], metrics[f"q{each}"]) for each in numbers)


def applied(counts: Counts) -> int:
    """Records that took effect, in all ranges."""
    return sum(each.applied for each in counts)


def quarantined(counts: Counts) -> int:
    """Records that went to quarantine, in all ranges."""
    return sum(each.quarantined for each in counts)
