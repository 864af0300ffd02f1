"""Rows to add, through the DataFrame writer and its options: one pass, one commit.

Bad records must lie in quarantine *before* the commit that accounts for them, and most
batches have none. So the one pass writes the rows and fails on the first bad one, before
anything is committed. Only such a batch is read again, split, and committed with care.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.spark.errors import said
from rivermouth.write.counts import counted, counters
from rivermouth.write.entry import writer_options
from rivermouth.write.landing import Site
from rivermouth.write.rows import Plain

_BAD_RECORD = "RM600: a record of this batch goes to quarantine"


class DataFrameWriter:
    """Appends the rows of every good record. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("the DataFrame writer lands rows to add, no changes by key")
        self._site = site
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = site.rows.columns
        self._refusing_bad = _refusing_bad()

    def land(self, decoded: DataFrame, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are known only where a record was bad."""
        try:
            self._commit(decoded.select(*self._columns, self._refusing_bad), plan.entry())
        except Exception as fault:
            if _BAD_RECORD not in said(fault):
                raise
            self._land_split(decoded, plan)

    def _land_split(self, decoded: DataFrame, plan: CommitPlan) -> None:
        ranges = plan.draft.ranges
        observation = Observation()
        observed = decoded.observe(observation, *counters(ranges))
        cached = observed.persist() if self._site.cache else observed
        try:
            self._site.quarantine.write(cached.where("code IS NOT NULL"), plan, None)
            counts = counted(ranges, observation.get)
            good = (cached if self._site.cache else decoded).where("code IS NULL")
            self._commit(good.select(*self._columns, "_kafka"), plan.entry(counts))
        finally:
            if self._site.cache:
                cached.unpersist()

    def _commit(self, rows: DataFrame, entry: Entry) -> None:
        tasks = self._site.tasks
        few = rows.coalesce(tasks) if tasks is not None else rows
        self._site.address.write(few.write.mode("append").options(**writer_options(entry)))


def _refusing_bad() -> Column:
    """``_kafka``; evaluating that of a bad row fails the job.

    Not a filter: the optimizer would push it below the decoding and decode twice.
    """
    refusal = F.raise_error(F.lit(_BAD_RECORD))
    return F.when(F.col("code").isNull(), F.col("_kafka")).otherwise(refusal).alias("_kafka")
