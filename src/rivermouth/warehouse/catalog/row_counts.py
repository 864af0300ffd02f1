"""Counting the rows of offset ranges in a table that only a catalog knows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import Address
from rivermouth.spark.errors import FAULTS, reason
from rivermouth.warehouse.ports import Counted


def with_counts(
    session: SparkSession, address: Address, entries: Sequence[Recorded]
) -> list[Counted]:
    """The same entries with their counts: counted in the table where an entry has none.

    One query, which reads the files that statistics do not rule out. Raises ProjectionFailed.
    """
    unknown = [each for each in entries if each.entry.rows is None]
    ranges = [one for each in unknown for one in each.entry.ranges]
    counts = dict(zip(ranges, _counted(session, address, ranges), strict=True)) if ranges else {}
    return [
        Counted(
            each,
            tuple(counts[one] for one in each.entry.ranges)
            if each.entry.rows is None
            else each.entry.rows,
        )
        for each in entries
    ]


def _counted(
    session: SparkSession, address: Address, ranges: Sequence[OffsetRange]
) -> list[RowCounts]:
    counts = [F.count_if(_inside(each)).alias(f"c{n}") for n, each in enumerate(ranges)]
    offset = F.col("_kafka").getField("offset")
    bounds = offset.between(
        min(each.from_offset for each in ranges), max(each.until_offset for each in ranges)
    )
    try:
        row = address.read(session).where(bounds).select(*counts).collect()[0]
    except FAULTS as fault:
        raise ProjectionFailed(
            "the commits stand, but their rows cannot be counted",
            where=str(address),
            found=reason(fault),
            remedy="Run again: the start counts them and brings the offsets table up to date",
        ) from fault
    return [RowCounts(number, 0) for number in row]


def _inside(each: OffsetRange) -> Column:
    kafka = F.col("_kafka")
    here = (kafka.getField("topic") == each.topic) & (kafka.getField("partition") == each.partition)
    offset = kafka.getField("offset")
    return here & (offset >= each.from_offset) & (offset < each.until_offset)
