"""The order in which rows are sent: that of their records."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def in_order(rows: DataFrame) -> DataFrame:
    """The rows of each Kafka partition in one task, in their order."""
    kafka = F.col("_kafka")
    topic, number, offset = (kafka.getField(each) for each in ("topic", "partition", "offset"))
    return rows.repartition(topic, number).sortWithinPartitions(topic, number, offset)
