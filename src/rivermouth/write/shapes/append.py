"""Append: every good record becomes a row."""

from __future__ import annotations

from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.write.rows import Plain
from rivermouth.write.transform.transform import transform_of


def append(pipeline: Pipeline) -> Plain:
    """The configured columns, as they were decoded, and the code that makes others of them."""
    row = F.col("row")
    columns = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
    return Plain(columns, transform_of(pipeline))
