"""Latest per key, once more: records that were read before, and the table that they left.

Each key gets the row that its records leave, see ``latest``. A row that is right stays untouched:
only what differs is written. The records are those of whole entries, from one to the newest. Where
no ``order_by`` decides, or a tombstone deletes, the entries decide in their order; so each record
is told the sequence of its entry, and only those from the last deciding entry of a key on count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.rows import Keyed
from rivermouth.write.shapes.latest import latest
from rivermouth.write.shapes.once_more import differs, with_sequence


def latest_again(pipeline: Pipeline, of_entries: Sequence[tuple[int, OffsetRange]]) -> Keyed:
    """The changes that mend the table; ``of_entries`` are the ranges of entries by sequence."""
    known, ordered = latest(pipeline), bool(pipeline.target.order_by)
    tombstones = pipeline.source.key is not None
    update = differs(pipeline.columns)
    if ordered:
        update = f"({known.update} OR {_SAME_RECORD}) AND {update}"

    def fold(good: DataFrame) -> DataFrame:
        slim = good.select("key_columns", "row", "_kafka", "tombstone")
        if len({sequence for sequence, _ in of_entries}) > 1 and (tombstones or not ordered):
            slim = _deciding(with_sequence(slim, of_entries), ordered=ordered)
        return known.fold(slim)

    return replace(known, fold=fold, update=update)


_SAME_RECORD = (
    "(t._kafka.topic = s.change._kafka.topic AND t._kafka.partition = s.change._kafka.partition"
    " AND t._kafka.offset = s.change._kafka.offset)"
)
"""The row is that of this record: what differs in it, somebody else has changed."""


def _deciding(rows: DataFrame, *, ordered: bool) -> DataFrame:
    """The records of each key from its deciding entry on: the last one with a tombstone of it, or,
    without ``order_by``, the last one with any record.
    """
    counted = F.when(F.col("tombstone"), F.col("sequence")) if ordered else F.col("sequence")
    decides = F.max(counted).over(Window.partitionBy("key_columns"))
    kept = rows.withColumn("decides", F.coalesce(decides, F.lit(0)))
    return kept.where("sequence >= decides").drop("sequence", "decides")
