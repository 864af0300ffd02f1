"""Rows to add, through a kept copy and an INSERT that carries its entry by session confs."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.tables import quoted
from rivermouth.warehouse.spark_commits import session_confs, statement_confs
from rivermouth.write.landing import CountedBatch, RawBatch, Site, Staged
from rivermouth.write.rows import Plain


class StagedInsert:
    """Decodes each batch once. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("an INSERT lands rows to add")
        self._site, self._columns = site, site.rows.columns

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the copy comes first."""
        return Staged(partial(self._commit, self._site.counted(batch.decoded(), plan, stack)))

    def _commit(self, batch: CountedBatch, plan: CommitPlan) -> None:
        batch.write_bad(plan)
        good = batch.good.select(*self._columns, "_kafka")
        names = ", ".join(map(quoted, good.columns))
        statement = f"INSERT INTO {self._site.address.sql} ({names}) SELECT * FROM {{good}}"
        with session_confs(good.sparkSession, statement_confs(plan.entry(batch.counts))):
            good.sparkSession.sql(statement, good=good)
