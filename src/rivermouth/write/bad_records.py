"""Bad records of a batch that tasks do not set apart: noticed by the pass that would commit.

Most batches have no bad record, and looking first would read every batch twice. So the one pass
*fails* at the first bad one, before anything is committed: where a task decodes it for a fold, or
where Spark evaluates it, by ``refusing``. Only such a batch is decoded again, by all tasks, kept,
counted and split. Whether quarantine is written thus depends on the rows themselves: never on a
metric, which Spark may count twice or lose when it computes a partition again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.formats.in_arrow import REFUSAL
from rivermouth.spark.errors import said
from rivermouth.write.staging import staged


def refusing() -> Column:
    """``_kafka`` of a decoded row; evaluating that of a bad one fails the job.

    Not a filter: the optimizer would push it below the decoding and decode twice.
    """
    refusal = F.raise_error(F.lit(REFUSAL))
    return F.when(F.col("code").isNull(), F.col("_kafka")).otherwise(refusal).alias("_kafka")


def refused(fault: Exception) -> bool:
    """Whether a job failed because of a bad record."""
    return REFUSAL in said(fault)


@contextmanager
def kept(decoded: DataFrame, folder: Path | None) -> Iterator[DataFrame]:
    """The decoded rows for several reads: in the cache, or in files in ``folder`` if it is given.

    Without it the first action on them evaluates them, by as many tasks as it has.
    """
    if folder is not None:
        with staged(decoded, folder) as files:
            yield files
        return
    cached = decoded.persist()
    try:
        yield cached
    finally:
        cached.unpersist()
