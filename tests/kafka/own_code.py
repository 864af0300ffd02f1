"""Pipelines with code of their own, and the functions that they name."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import Batch
from tests.lake import append_pipeline

EXPLODED = {
    "explode": {
        "transform": "tests.kafka.own_code:exploded",
        "schema": "item BIGINT, part INT",
    },
    "inline": {
        "select": "auction AS item, explode(sequence(1, int(auction % 3) + 1)) AS part",
        "schema": "item BIGINT, part INT",
    },
}
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
    made = dict((MADE | EXPLODED)[kind])
    plain = append_pipeline(topic, **source)
    explode = {"explode": True} if kind in EXPLODED else {}
    target = {**plain["target"], "schema": made.pop("schema"), **explode}
    return {**plain, **made, "target": target}


def even(df: DataFrame, batch: Batch) -> DataFrame:
    """The bids on even auctions, with where their batch began."""
    begins = {str(each.topic_partition): each.from_offset for each in batch.ranges}
    place = F.concat_ws("-", "_kafka.topic", "_kafka.partition")
    cases = [F.when(place == name, F.lit(offset).cast("bigint")) for name, offset in begins.items()]
    return df.where("auction % 2 = 0").select(
        F.col("auction").alias("item"), F.coalesce(*cases).alias("began"), "_kafka"
    )


def exploded(df: DataFrame, batch: Batch) -> DataFrame:
    """As many rows of each bid as its auction, modulo 3: none, one or two."""
    parts = F.expr("if(auction % 3 = 0, array(), sequence(1, int(auction % 3)))")
    return df.select(F.col("auction").alias("item"), F.explode(parts).alias("part"), "_kafka")


def each_twice(df: DataFrame, batch: Batch) -> DataFrame:
    """Each bid as it is, in two rows."""
    return df.unionByName(df)


def even_items(df: DataFrame, batch: Batch) -> DataFrame:
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
