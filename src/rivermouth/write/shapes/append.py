"""Append: every good record becomes a row."""

from __future__ import annotations

from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.write.rows import Plain


def append(pipeline: Pipeline) -> Plain:
    """The configured columns, as they were decoded."""
    row = F.col("row")
    return Plain([row.getField(each.name).alias(each.name) for each in pipeline.columns])
