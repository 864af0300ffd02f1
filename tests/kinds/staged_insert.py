"""Rows to add, through a staged copy and an INSERT that carries its entry by session confs."""

from __future__ import annotations

from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.tables import quoted
from rivermouth.warehouse.spark_commits import session_confs, statement_confs
from rivermouth.write.evaluation import grouped_counts, quarantined, staged
from rivermouth.write.landing import RawBatch, Site
from rivermouth.write.rows import Plain


class StagedInsert:
    """Decodes each batch once. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Plain):
            raise TypeError("an INSERT lands rows to add")
        self._site, self._columns, self._stage = site, site.rows.columns, site.staging()

    def land(self, batch: RawBatch, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are always known: the copy comes first."""
        with staged(batch.decoded(), self._stage / plan.commit) as copy:
            counts = grouped_counts(copy, plan.draft.ranges)
            if bad := quarantined(counts):
                self._site.quarantine.write(copy.where("code IS NOT NULL"), plan, bad)
            good = copy.where("code IS NULL").select(*self._columns, "_kafka")
            names = ", ".join(map(quoted, good.columns))
            statement = f"INSERT INTO {self._site.address.sql} ({names}) SELECT * FROM {{good}}"
            with session_confs(good.sparkSession, statement_confs(plan.entry(counts))):
                good.sparkSession.sql(statement, good=good)
