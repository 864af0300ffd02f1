"""How many of Kafka's rows Spark gives to a Python worker at once.

Spark ends an Arrow batch with 10,000 rows, or earlier, once it holds 64 MB. For the second it asks
Arrow for the size of all columns after each row: for records of 220 B this is a quarter of what the
JVM does with them. A batch of fewer rows keeps to these bytes without that, unless a record holds
more than its share of them. So the rows fail at a larger record, and only the batches of a pipeline
that has met one are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.spark.errors import said
from rivermouth.spark.tables import literal
from rivermouth.warehouse.spark_commits import session_confs
from rivermouth.write.landing import Site

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS = 4_000
"""With fewer the workers are slower, with more they are not faster."""
SHARE = (64 << 20) // _ROWS
"""The most bytes of a record whose batch need not be measured."""
NOT_MEASURED = {BYTES: str(2**31 - 1), ROWS: str(_ROWS)}
"""The settings for batches of such records alone."""
_LARGE = "rivermouth: a record is larger than its share of an Arrow batch"

Made = TypeVar("Made")


class ArrowBatches:
    """Evaluates the batches of one pipeline."""

    def __init__(self, site: Site) -> None:
        self._measured = _measured(site)
        self._value = _value()  # built once: each is calls into the JVM, in every batch

    def evaluated(self, rows: DataFrame, evaluate: Callable[[DataFrame], Made]) -> Made:
        """What ``evaluate`` makes of Kafka's rows.

        It is called again where it meets a large record: what it leaves behind when an action
        fails must not count.
        """
        if self._measured:
            return evaluate(rows)
        try:
            with session_confs(rows.sparkSession, NOT_MEASURED):
                return evaluate(rows.withColumn("value", self._value))
        except Exception as fault:
            if _LARGE not in said(fault):
                raise
        self._measured = True
        return evaluate(rows)


def _measured(site: Site) -> bool:
    """Whether Spark has to measure all batches of a pipeline.

    That is where somebody has set how large they are; where more than key and value may be large;
    where a worker may get more than Kafka's rows, from own code; and elsewhere than on one host,
    where nobody has tried.
    """
    pipeline, conf = site.pipeline, site.session.conf
    if pipeline.made_by or site.tasks is None:
        return True
    set_by_others = any(conf.get(each, None) is not None for each in NOT_MEASURED)
    return set_by_others or pipeline.reads_headers


def _value() -> Column:
    """The column ``value``; to evaluate it fails where key and value hold more than ``SHARE``."""
    size = "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"
    return F.expr(f"if({size} <= {SHARE}, value, raise_error({literal(_LARGE)}))")
