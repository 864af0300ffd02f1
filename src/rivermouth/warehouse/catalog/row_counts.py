"""Counting the rows of offset ranges in a table that only a catalog knows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import Address
from rivermouth.spark.balanced import balanced
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
    rows = [
        (each.topic, each.partition, each.from_offset, each.until_offset, number)
        for number, each in enumerate(ranges)
    ]
    try:
        # One join, whatever their number: an aggregate for each range would be asked for each row.
        wanted = session.createDataFrame(rows, _RANGES).hint("broadcast")
        kafka = F.col("_kafka")
        place = [kafka.getField(each).alias(each) for each in ("topic", "partition", "offset")]
        here = address.read(session).where(_bounds(ranges)).select(*place)
        inside = (F.col("offset") >= F.col("first")) & (F.col("offset") < F.col("until"))
        joined = here.join(wanted, ["topic", "partition"]).where(inside)
        found = {row["number"]: row["count"] for row in joined.groupBy("number").count().collect()}
    except FAULTS as fault:
        raise ProjectionFailed(
            "the commits stand, but their rows cannot be counted",
            where=str(address),
            found=reason(fault),
            remedy="Run again: the start counts them and brings the offsets table up to date",
        ) from fault
    # Since an accepted change of the source, rows of earlier records may have these coordinates.
    return [RowCounts(min(found.get(n, 0), each.span), 0) for n, each in enumerate(ranges)]


_FEW = 64  # ranges that are looked for one by one: a condition is planned anew at each commit
_RANGES = "topic STRING, partition INT, first BIGINT, until BIGINT, number INT"


def _bounds(ranges: Sequence[OffsetRange]) -> Column:
    """What statistics of files can rule out: a few ranges each, of many those of a topic together.

    Together they may span much of the table, if the offsets of the partitions are far apart.
    """
    if len(ranges) <= _FEW:
        return balanced(or_, [_bound(each.topic, [each]) for each in ranges])
    by_topic: dict[str, list[OffsetRange]] = {}
    for each in ranges:
        by_topic.setdefault(each.topic, []).append(each)
    return balanced(or_, [_bound(topic, its) for topic, its in by_topic.items()])


def _bound(topic: str, ranges: Sequence[OffsetRange]) -> Column:
    kafka, numbers = F.col("_kafka"), [each.partition for each in ranges]
    first = min(each.from_offset for each in ranges)
    last = max(each.until_offset for each in ranges)
    return (
        (kafka.getField("topic") == topic)
        & kafka.getField("partition").between(min(numbers), max(numbers))
        & kafka.getField("offset").between(first, last)
    )
