"""The place to which a made row is to be sent: each row names one that the target has.

The decoder puts a record that names none into quarantine. What own code made is no record, so
there a wrong row fails the job, before anything is sent.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from rivermouth.config import Target
from rivermouth.spark.address import quoted
from rivermouth.write.transform.coordinates import refusal

WRONG_PLACE = "RM506: a row that names no place to send it to"


def placed(target: Target) -> Column:
    """``_kafka`` of a row; evaluating that of a row which names no place fails the job."""
    found = F.col("_kafka")
    if target.partition_column is not None:
        negative = F.col(quoted(target.partition_column)) < 0
        found = F.when(negative, _refusal(target.partition_column, "is negative")).otherwise(found)
    if target.topic_column is not None:
        topic = F.col(quoted(target.topic_column))
        listed = F.coalesce(topic.isin(*(target.kafka or ())), F.lit(False))
        told = _refusal(target.topic_column, "names none of the topics in target.kafka")
        found = F.when(~listed, told).otherwise(found)
    return found.alias("_kafka")


def _refusal(column: str, why: str) -> Column:
    return refusal(WRONG_PLACE, f"{column} {why}")
