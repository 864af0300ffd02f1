"""Latest per key: one row per key, the newest. The mode ``upsert``.

The fold, which ``verify`` repeats on its own: within a partition offsets order the records
of a key, and a tombstone removes all that came before it. Of what is left the newest wins: the
greatest (order_by columns, topic, partition, offset), nulls lowest. A tombstone deletes
the row that stood before the batch; otherwise the winner replaces it if it is newer. Without
``order_by`` it always is: the ledger's order decides between batches. A key that moves to another
partition, as it may when partitions are added, would otherwise keep its old row for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.spark.address import quoted
from rivermouth.write.rows import RECORDS, Keyed


def latest(pipeline: Pipeline) -> Keyed:
    """The changes of a batch, one per key; null values delete where ``source.key`` is set."""
    order_by, tombstones = pipeline.target.order_by, pipeline.source.key is not None
    names = [each.name for each in pipeline.columns]
    values = {name: f"s.change.row.{quoted(name)}" for name in names}
    ranks = _rank("s.change.row", "s.change._kafka", order_by), _rank("t", "t._kafka", order_by)
    newer = " > ".join(ranks) if order_by else "s.change IS NOT NULL"
    return Keyed(
        keys=pipeline.target.keys,
        fold=partial(fold, order_by=order_by, tombstones=tombstones),
        inserts={**values, "_kafka": "s.change._kafka"},
        insert="s.change IS NOT NULL",
        update=f"s.had_tombstone OR {newer}",
        updates={**values, "_kafka": "s.change._kafka"},
        delete="s.change IS NULL" if tombstones else None,
    )


def fold(good: DataFrame, order_by: Sequence[str], *, tombstones: bool) -> DataFrame:
    """One row per key: ``key_columns``, ``records``, ``had_tombstone``, and the newest ``change``.

    ``change`` STRUCT<row, _kafka> is null where nothing came after the last tombstone.
    """
    keyed, stands = good.select("key_columns", "row", "_kafka", "tombstone"), ~F.col("tombstone")
    if tombstones:
        keyed = _with_last_tombstone(keyed)
        stands &= F.col("last").isNull() | (_offset() > F.col("last"))
    newest = F.max_by(
        F.when(stands, F.struct("row", "_kafka")), F.when(stands, _rank_column(order_by))
    )
    return keyed.groupBy("key_columns").agg(
        F.count("*").alias(RECORDS),
        F.bool_or("tombstone").alias("had_tombstone"),
        newest.alias("change"),
    )


def _with_last_tombstone(keyed: DataFrame) -> DataFrame:
    """With ``last``, the offset of the last tombstone of the same key and partition, or null."""
    here = Window.partitionBy(
        "key_columns", F.col("_kafka").getField("topic"), F.col("_kafka").getField("partition")
    )
    return keyed.withColumn("last", F.max(F.when(F.col("tombstone"), _offset())).over(here))


def _offset() -> Column:
    return F.col("_kafka").getField("offset")


def _rank_column(order_by: Sequence[str]) -> Column:
    row, kafka = F.col("row"), F.col("_kafka")
    place = [kafka.getField(name).alias(name) for name in ("topic", "partition", "offset")]
    return F.struct(*(row.getField(n).alias(f"o{i}") for i, n in enumerate(order_by)), *place)


def _rank(row: str, kafka: str, order_by: Sequence[str]) -> str:
    """The same rank in SQL, of a change or of the row that stands."""
    orders = [f"{row}.{quoted(each)}" for each in order_by]
    place = [f"{kafka}.{name}" for name in ("topic", "partition", "offset")]
    return f"struct({', '.join([*orders, *place])})"
