"""Rows to add, through a staged copy and an INSERT that carries its entry by session confs."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.spark.tables import quoted
from rivermouth.warehouse.spark_commits import record_entry, session_confs, statement_confs
from rivermouth.write.evaluation import grouped_counts, quarantined, staged
from rivermouth.write.landing import Changes, RawBatch, Site, Staged
from rivermouth.write.rows import Plain


class StagedInsert:
    """Decodes each batch once. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("an INSERT lands rows to add")
        self._site, self._columns, self._stage = site, site.rows.columns, site.staging()

    def stage(self, batch: RawBatch | Changes, plan: CommitPlan, held: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the copy comes first."""
        if isinstance(batch, Changes):
            raise TypeError("an INSERT lands rows to add, no changes by key")
        copy = held.enter_context(staged(batch.decoded(), self._stage / plan.commit))
        return Staged(partial(self._commit, copy, grouped_counts(copy, plan.draft.ranges)))

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """See ``Landing.record``."""
        record_entry(session, plan.empty_entry(), self._site.address)

    def way(self) -> None:
        """See ``Landing.way``."""

    def _commit(self, copy: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        if bad := quarantined(counts):
            self._site.quarantine.write(copy.where("code IS NOT NULL"), plan, bad)
        good = copy.where("code IS NULL").select(*self._columns, "_kafka")
        names = ", ".join(map(quoted, good.columns))
        statement = f"INSERT INTO {self._site.address.sql} ({names}) SELECT * FROM {{good}}"
        with session_confs(good.sparkSession, statement_confs(plan.entry(counts))):
            good.sparkSession.sql(statement, good=good)
