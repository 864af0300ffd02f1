"""Every good record becomes a row: of the table, or one that is sent."""

from __future__ import annotations

from pyspark.sql import functions as F

from rivermouth.config import Delivery, Pipeline
from rivermouth.write.rows import Plain, Sent
from rivermouth.write.transform import transform_of


def append(pipeline: Pipeline) -> Plain:
    """The configured columns, as they were decoded, and the code that makes others of them."""
    row = F.col("row")
    columns = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
    return Plain(columns, transform_of(pipeline))


def send(pipeline: Pipeline) -> Sent:
    """The records, or what own code makes of them, before the commit or after it."""
    first = pipeline.delivery is Delivery.AT_LEAST_ONCE
    return Sent(first, transform_of(pipeline))
