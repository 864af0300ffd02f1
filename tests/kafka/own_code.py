"""Pipelines with code of their own, and the function that one of them names."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import Batch
from tests.lake import append_pipeline

MADE = {
    "select": {
        "select": "auction AS item, price * 2 AS twice",
        "schema": "item BIGINT, twice BIGINT",
    },
    "transform": {
        "transform": "tests.kafka.own_code:even",
        "schema": "item BIGINT, began BIGINT",
    },
}


def a_pipeline(topic: str, kind: str, **source: Any) -> dict[str, Any]:
    """An append pipeline from ``topic`` whose rows are made by one ``kind`` of code."""
    made = dict(MADE[kind])
    plain = append_pipeline(topic, **source)
    target = {**plain["target"], "schema": made.pop("schema")}
    return {**plain, **made, "target": target}


def even(df: DataFrame, batch: Batch) -> DataFrame:
    """The bids on even auctions, with where their batch began."""
    begins = {str(each.topic_partition): each.from_offset for each in batch.ranges}
    place = F.concat_ws("-", "_kafka.topic", "_kafka.partition")
    cases = [F.when(place == name, F.lit(offset).cast("bigint")) for name, offset in begins.items()]
    return df.where("auction % 2 = 0").select(
        F.col("auction").alias("item"), F.coalesce(*cases).alias("began"), "_kafka"
    )
