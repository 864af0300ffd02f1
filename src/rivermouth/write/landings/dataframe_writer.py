"""Rows to add, through the DataFrame writer and its options: one pass, one commit.

Bad records must lie in quarantine *before* the commit that accounts for them, and most
batches have none. So the one pass writes the rows and fails on the first bad one, before
anything is committed. Only such a batch is read again, split, and committed with care.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.write.bad_records import kept, refused, refusing
from rivermouth.write.counts import grouped_counts
from rivermouth.write.entry import writer_options
from rivermouth.write.landing import Site
from rivermouth.write.rows import Plain


class DataFrameWriter:
    """Appends the rows of every good record. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("the DataFrame writer lands rows to add, no changes by key")
        self._site = site
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = site.rows.columns
        self._refusing = refusing()
        self._stage: Path | None = None

    def land(self, decoded: DataFrame, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are known only where a record was bad."""
        decoded = self._site.few(decoded)
        try:
            self._commit(decoded.select(*self._columns, self._refusing), plan.entry())
        except Exception as fault:
            if not refused(fault):
                raise
            self._land_split(decoded, plan)

    def _land_split(self, decoded: DataFrame, plan: CommitPlan) -> None:
        with kept(decoded, self._folder(plan)) as batch:
            counts = grouped_counts(batch, plan.draft.ranges)
            self._site.quarantine.write(batch.where("code IS NOT NULL"), plan, counts)
            good = batch.where("code IS NULL")
            self._commit(good.select(*self._columns, "_kafka"), plan.entry(counts))

    def _folder(self, plan: CommitPlan) -> Path | None:
        """Where the batch is kept if it cannot be cached; the folder of the run is made once."""
        if self._site.cache:
            return None
        self._stage = self._stage or self._site.staging()
        return self._stage / plan.commit

    def _commit(self, rows: DataFrame, entry: Entry) -> None:
        self._site.address.write(rows.write.mode("append").options(**writer_options(entry)))
