"""Noticing an action inside a function: it is called with rows that nobody can evaluate."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ACTION = "RM506: these rows are not to be evaluated"


def unevaluable(rows: DataFrame) -> DataFrame:
    """Rows with the same columns; to evaluate them fails. No record is read."""
    # A filter: a column would not be evaluated where only rows are counted.
    nothing = rows.sparkSession.range(1).where(F.raise_error(F.lit(ACTION)).isNotNull())
    columns = [F.lit(None).cast(each.dataType).alias(each.name) for each in rows.schema]
    return nothing.select(columns)
