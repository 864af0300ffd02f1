"""Insert: one row per key, the first. A row that the table has stays as it is."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.spark.tables import quoted
from rivermouth.write.rows import Keyed


def insert(pipeline: Pipeline) -> Keyed:
    """A row for each key that the table does not have."""
    row = {each.name: f"s.first.row.{quoted(each.name)}" for each in pipeline.columns}
    inserts = {**row, "_kafka": "s.first._kafka"}
    return Keyed(keys=pipeline.target.keys, fold=_first, inserts=inserts)


def _first(good: DataFrame) -> DataFrame:
    place = F.struct("_kafka.topic", "_kafka.partition", "_kafka.offset")
    first = F.min_by(F.struct("row", "_kafka"), place)
    return good.groupBy("key_columns").agg(first.alias("first"))
