"""Append: one pass over the batch, one commit, through the DataFrame writer's options.

Bad records must lie in quarantine *before* the commit that accounts for them, and most
batches have none. So the one pass writes the rows and fails on the first bad one, before
anything is committed; only such a batch is read again, split, and committed with care.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from rivermouth.ledger import Entry
from rivermouth.spark_errors import said
from rivermouth.write.commit import (
    Quarantine,
    Target,
    counted,
    counters,
    good_rows,
    writer_options,
)

_BAD_RECORD = "RM600: a record of this batch goes to quarantine"


@dataclass(frozen=True)
class Append:
    """Appends every good record."""

    target: Target
    quarantine: Quarantine
    files: int
    """How many files a commit adds at most: the tasks that write at once."""

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        """See ``Writer.write``. ``rows`` are known only where a record was bad."""
        try:
            self._commit(good_rows(_refusing_bad(decoded), self.target), entry)
        except Exception as fault:
            if _BAD_RECORD not in said(fault):
                raise
            return self._write_split(decoded, entry)
        return entry

    def _write_split(self, decoded: DataFrame, entry: Entry) -> Entry:
        observation = Observation()
        cached = decoded.observe(observation, *counters(entry.ranges)).persist()
        try:
            self.quarantine.write(cached.where("code IS NOT NULL"), entry)
            entry = counted(entry, observation.get)
            self._commit(good_rows(cached.where("code IS NULL"), self.target), entry)
        finally:
            cached.unpersist()
        return entry

    def _commit(self, rows: DataFrame, entry: Entry) -> None:
        options = writer_options(entry)
        writer = rows.coalesce(self.files).write.format("delta").mode("append")
        writer.options(**options).save(self.target.path)


def _refusing_bad(decoded: DataFrame) -> DataFrame:
    """The same rows; evaluating ``_kafka`` of a bad one fails the job.

    Not a filter: the optimizer would push it below the decoding and decode twice.
    """
    refusal = F.raise_error(F.lit(_BAD_RECORD))
    checked = F.when(F.col("code").isNull(), F.col("_kafka")).otherwise(refusal)
    return decoded.withColumn("_kafka", checked)
