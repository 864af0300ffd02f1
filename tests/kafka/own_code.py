"""A function that a pipeline of the tests names as its ``transform``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import Batch


def even(df: DataFrame, batch: Batch) -> DataFrame:
    """The bids on even auctions, with where their batch began."""
    begins = {str(each.topic_partition): each.from_offset for each in batch.ranges}
    place = F.concat_ws("-", "_kafka.topic", "_kafka.partition")
    cases = [F.when(place == name, F.lit(offset).cast("bigint")) for name, offset in begins.items()]
    return df.where("auction % 2 = 0").select(
        F.col("auction").alias("item"), F.coalesce(*cases).alias("began"), "_kafka"
    )
