"""Rows to add, through the DataFrame writer and its options: one pass, one commit.

The pass fails at the first bad record, before anything is committed (``write.evaluation``). Only
such a batch is read again and split. So is one of which the pipeline's own code does not make each
row of its record alone: there the optimizer may leave a bad record unevaluated, and nobody would
notice it.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.warehouse.spark_commits import writer_options
from rivermouth.write.evaluation import refusing, unless_refused
from rivermouth.write.landing import RawBatch, Site, Staged
from rivermouth.write.rows import Plain
from rivermouth.write.transform import Made, RowsOfRecord


class DataFrameWriter:
    """Appends the rows of every good record. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("the DataFrame writer lands rows to add, no changes by key")
        self._site = site
        self._transform = site.rows.transform
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = site.rows.columns
        self._refusing = refusing()

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. Spark reads and commits in one pass: nothing is read before."""
        return Staged(partial(self._land, batch, stack), was_read=False)

    def _land(self, batch: RawBatch, stack: ExitStack, plan: CommitPlan) -> None:
        """Make the commit of the plan with the rows of the batch.

        The counts are known where a record was bad, and where the own code may have left out rows
        or made several: an entry counts the records that took effect.
        """
        decoded = self._site.coalesced(batch.decoded())
        made = self._made(decoded, plan)
        if not made.one_pass:
            self._land_split(decoded, stack, plan)
            return
        unless_refused(
            lambda: self._commit(made.rows, plan, plan.entry()),
            lambda: self._land_split(decoded, stack, plan),
        )

    def _land_split(self, decoded: DataFrame, stack: ExitStack, plan: CommitPlan) -> None:
        batch = self._site.counted(decoded, plan, stack)
        batch.write_bad(plan)
        made = self._made(batch.good, plan)
        shuffled = made.of_record is RowsOfRecord.ANY
        rows = self._site.coalesced(made.rows) if shuffled else made.rows
        self._commit(rows, plan, plan.entry(batch.counts))

    def _made(self, decoded: DataFrame, plan: CommitPlan) -> Made:
        """The rows of the table; to evaluate them fails at a bad record, if there is one."""
        if self._transform is None:
            return Made(decoded.select(*self._columns, self._refusing), RowsOfRecord.ONE, True)
        # First, since Spark shows only the first columns of many in a plan, which is looked at.
        rows = decoded.select(self._refusing, *self._columns)
        return self._transform.made(rows, Batch.of(plan))

    def _commit(self, rows: DataFrame, plan: CommitPlan, entry: Entry) -> None:
        own = self._transform
        with own.blamed(Batch.of(plan)) if own is not None else nullcontext():
            self._site.address.write(rows.write.mode("append").options(**writer_options(entry)))
