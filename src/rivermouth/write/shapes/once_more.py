"""Records that are applied once more: which entry read each, and which rows differ from them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rivermouth.config import Column
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import quoted

_AS_JSON = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
"""To the microsecond: by itself Spark writes milliseconds."""
_STARTS = "topic STRING, partition INT, at BIGINT, sequence BIGINT"


def differs(columns: Sequence[Column]) -> str:
    """SQL: whether the row ``t`` is another one than that of the record ``s.change``."""
    return f"({' OR '.join([*map(_one_differs, columns), 'NOT (t._kafka <=> s.change._kafka)'])})"


def _one_differs(column: Column) -> str:
    new, old = f"s.change.row.{quoted(column.name)}", f"t.{quoted(column.name)}"
    if "MAP<" in column.type:  # maps cannot be compared
        new, old = (f"to_json(named_struct('c', {each}), {_AS_JSON})" for each in (new, old))
    return f"NOT ({old} <=> {new})"


def with_sequence(rows: DataFrame, of_entries: Sequence[tuple[int, OffsetRange]]) -> DataFrame:
    """With ``sequence``, that of the entry that covers the record.

    The starts of the ranges lie between the records of their partition, so one sort tells it:
    however many entries there are.
    """
    listed = [(one.topic, one.partition, one.from_offset, number) for number, one in of_entries]
    starts = rows.sparkSession.createDataFrame(listed, _STARTS)
    place = [F.col("_kafka").getField(name) for name in ("topic", "partition", "offset")]
    names = [each.strip().split()[0] for each in _STARTS.split(",")[:3]]
    placed = rows.select("*", *(each.alias(name) for each, name in zip(place, names, strict=True)))
    both = placed.unionByName(starts, allowMissingColumns=True)
    # A start comes before the record of the same offset.
    along = Window.partitionBy("topic", "partition").orderBy("at", F.col("_kafka").isNotNull())
    told = F.last("sequence", ignorenulls=True).over(
        along.rowsBetween(Window.unboundedPreceding, 0)
    )
    return both.withColumn("sequence", told).where("_kafka IS NOT NULL").drop(*names)
