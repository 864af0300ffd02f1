"""How many of Kafka's rows Spark gives to a Python worker at once.

Spark ends an Arrow batch with a number of rows, or earlier, once it holds 64 MB. For that it asks
Arrow for the size of all columns after each row: for records of 220 B this is a quarter of what the
JVM does with them. Where no record holds more than its share of these bytes, the number of rows
alone keeps a batch as small. So the rows fail at a larger record, and only the batches of a
pipeline that has met one are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.spark.address import literal
from rivermouth.spark.errors import said
from rivermouth.write.entry import session_confs
from rivermouth.write.landing import Site

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_DEFAULT_BYTES, _DEFAULT_ROWS = 64 << 20, "10000"
_NOT_MEASURED = {BYTES: str(2**31 - 1)}
_LARGE = "rivermouth: a record is larger than its share of an Arrow batch"

Made = TypeVar("Made")


class ArrowBatches:
    """Evaluates the batches of one pipeline."""

    def __init__(self, site: Site) -> None:
        self._share = _share(site)

    def evaluated(self, rows: DataFrame, evaluate: Callable[[DataFrame], Made]) -> Made:
        """What ``evaluate`` makes of Kafka's rows.

        It is called again where it meets a large record: what it leaves behind when an action
        fails must not count.
        """
        if self._share is None:
            return evaluate(rows)
        try:
            with session_confs(rows.sparkSession, _NOT_MEASURED):
                return evaluate(_failing_beyond(self._share, rows))
        except Exception as fault:
            if _LARGE not in said(fault):
                raise
        self._share = None
        return evaluate(rows)


def _share(site: Site) -> int | None:
    """The most bytes of a record whose batch need not be measured; None where all have to be.

    That is where somebody has set how many bytes a batch may have, or it may have any number of
    rows; where more than key and value may be large; where own code may give any rows to Python;
    and elsewhere than on one host, where nobody has tried.
    """
    config, conf = site.config, site.session.conf
    if config is None or config.made_by or "headers" in config.source.metadata:
        return None
    if site.tasks is None or conf.get(BYTES, None) is not None:
        return None
    rows = int(conf.get(ROWS, _DEFAULT_ROWS) or 0)
    return _DEFAULT_BYTES // rows if rows > 0 else None


def _failing_beyond(share: int, rows: DataFrame) -> DataFrame:
    """The same rows; to evaluate one whose key and value hold more bytes fails the job."""
    size = "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"
    value = f"if({size} <= {share}, value, raise_error({literal(_LARGE)}))"
    return rows.withColumn("value", F.expr(value))
