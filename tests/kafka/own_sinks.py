"""Code that makes rows to send, and a function that gets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import Batch


def even(df: DataFrame, batch: Batch) -> DataFrame:
    """The bids on even auctions, each with a row of another name."""
    return df.where("auction % 2 = 0").select(F.col("auction").alias("item"), "_kafka")


def shuffled(df: DataFrame, batch: Batch) -> DataFrame:
    """The same in another order, by way of another table."""
    names = df.sparkSession.range(0, 100_000, 2).selectExpr("id AS item")
    made = df.join(names.repartition(7), F.col("auction") == F.col("item"))
    return made.select("item", "_kafka")


def routed(df: DataFrame, batch: Batch) -> DataFrame:
    """A topic and a partition for each bid, by its auction; that of 7 is wrong."""
    topic = F.expr("element_at(array('own-routed-a', 'own-routed-b'), int(auction % 2) + 1)")
    wrong = F.when(F.col("auction") == 7, F.lit("own-routed-in")).otherwise(topic)
    return df.select(F.col("auction").alias("item"), wrong.alias("to"), "_kafka")


def note(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Check what each call gets: made rows, those of a Kafka partition in their order."""
    reached: dict[int, int] = {}
    for each in rows:
        assert {*each} == {"item", "_kafka"}
        partition, offset = each["_kafka"]["partition"], each["_kafka"]["offset"]
        assert reached.get(partition, -1) < offset, "in their order"
        assert partition not in reached or partition == [*reached][-1], "one after the other"
        reached[partition] = offset
