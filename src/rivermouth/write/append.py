"""Append: one pass over the batch, one commit, through the DataFrame writer's options.

Bad records must lie in quarantine *before* the commit that accounts for them, and most
batches have none. So the one pass writes the rows and fails on the first bad one, before
anything is committed; only such a batch is read again, split, and committed with care.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from rivermouth.protocol.entry import Entry
from rivermouth.spark.errors import said
from rivermouth.write.commit import (
    Quarantine,
    Target,
    counted,
    counters,
    row_columns,
    writer_options,
)

_BAD_RECORD = "RM600: a record of this batch goes to quarantine"


class Append:
    """Appends every good record.

    ``files``: how many files a commit adds at most, which is the tasks that write at once
    (None: as the platform thinks best). ``persist``: whether a batch may be kept in memory.
    """

    def __init__(
        self, target: Target, quarantine: Quarantine, files: int | None, *, persist: bool
    ) -> None:
        self._address = target.address
        self._quarantine = quarantine
        self._files = files
        self._persist = persist
        # Built once: each is many calls into the JVM, too dear per batch.
        self._rows = row_columns(target)
        self._refusing_bad = _refusing_bad()

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        """See ``Writer.write``. ``rows`` are known only where a record was bad."""
        try:
            self._commit(decoded.select(*self._rows, self._refusing_bad), entry)
        except Exception as fault:
            if _BAD_RECORD not in said(fault):
                raise
            return self._write_split(decoded, entry)
        return entry

    def _write_split(self, decoded: DataFrame, entry: Entry) -> Entry:
        observation = Observation()
        observed = decoded.observe(observation, *counters(entry.ranges))
        cached = observed.persist() if self._persist else observed
        try:
            self._quarantine.write(cached.where("code IS NOT NULL"), entry)
            entry = counted(entry, observation.get)
            good = cached if self._persist else decoded
            self._commit(good.where("code IS NULL").select(*self._rows, "_kafka"), entry)
        finally:
            if self._persist:
                cached.unpersist()
        return entry

    def _commit(self, rows: DataFrame, entry: Entry) -> None:
        few = rows.coalesce(self._files) if self._files is not None else rows
        self._address.write(few.write.mode("append").options(**writer_options(entry)))


def _refusing_bad() -> Column:
    """``_kafka``; evaluating that of a bad row fails the job.

    Not a filter: the optimizer would push it below the decoding and decode twice.
    """
    refusal = F.raise_error(F.lit(_BAD_RECORD))
    return F.when(F.col("code").isNull(), F.col("_kafka")).otherwise(refusal).alias("_kafka")
