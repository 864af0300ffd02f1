"""The first row of each key stays: the mode ``insert``.

Of the records of a key in one batch the least (topic, partition, offset) is the first, and a key
that has a row already keeps it. So repeats are dropped over the whole table, not over a window.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.spark.address import quoted
from rivermouth.write.rows import RECORDS, Keyed


def first(pipeline: Pipeline) -> Keyed:
    """One row per key of a batch, which is added where the table has no row of that key."""
    values = {each.name: f"s.change.row.{quoted(each.name)}" for each in pipeline.columns}
    return Keyed(
        keys=pipeline.target.keys,
        fold=first_of,
        inserts={**values, "_kafka": "s.change._kafka"},
    )


def first_of(good: DataFrame, *before: str) -> DataFrame:
    """One row per key: ``key_columns``, ``records``, and the first ``change`` (row, _kafka).

    The columns ``before`` decide before the place of a record does.
    """
    kafka = F.col("_kafka")
    place = (kafka.getField(name) for name in ("topic", "partition", "offset"))
    return good.groupBy("key_columns").agg(
        F.count("*").alias(RECORDS),
        F.min_by(F.struct("row", "_kafka"), F.struct(*before, *place)).alias("change"),
    )
