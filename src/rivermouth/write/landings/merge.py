"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.address import Address, quoted
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.bad_records import refused
from rivermouth.write.counts import applied, grouped_counts
from rivermouth.write.entry import session_confs, statement_confs
from rivermouth.write.landing import RawBatch, Site
from rivermouth.write.landings.broadcast import Broadcast
from rivermouth.write.landings.folding import Folded, Folding
from rivermouth.write.rows import Keyed
from rivermouth.write.soft_delete import TOMBSTONE, has_mark

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a record folds to nothing; adaptive execution would then drop the plan and, with
# it, the counts.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_SOURCE = "rivermouth_source"


class Merge:
    """Folds a batch, materialises the changes once, and merges them. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Keyed):
            raise TypeError("a MERGE lands changes by key")
        self._site = site
        self._rows = site.rows
        self._folding = Folding(site, site.rows)
        self._arrow_batches = ArrowBatches(site)
        self._broadcast = Broadcast()
        marked = has_mark(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def land(self, batch: RawBatch, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are always known: the fold comes first.

        Only a batch with bad records carries what quarantine needs.
        """
        try:
            self._land_clean(batch, plan)
        except Exception as fault:
            if not refused(fault):
                raise
            self._land_split(self._site.few(batch.decoded()), plan)

    def _land_clean(self, batch: RawBatch, plan: CommitPlan) -> None:
        def fold(rows: DataFrame) -> tuple[Folded, DataFrame]:
            folded = self._folding.of(replace(batch, rows=rows), plan.draft.ranges)
            with session_confs(rows.sparkSession, {_ADAPTIVE_EXCLUDES: _DROP_OF_EMPTY_PLANS}):
                # The one materialisation: MERGE scans its source twice, and Kafka is no place for
                # that.
                return folded, folded.changes.localCheckpoint()

        folded, changes = self._arrow_batches.evaluated(batch.rows, fold)
        self._merge(changes, folded.counts(self._site.folded(changes)), plan)

    def _land_split(self, decoded: DataFrame, plan: CommitPlan) -> None:
        with self._site.fitted(decoded, None) as batch:
            counts = grouped_counts(batch, plan.draft.ranges)
            self._site.quarantine.write(batch.where("code IS NOT NULL"), plan, counts)
            changes = self._rows.fold(batch.where("code IS NULL")).localCheckpoint()
        self._merge(changes, counts, plan)

    def _merge(self, changes: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        self.change(changes, plan.entry(counts), applied(counts))

    def change(self, changes: DataFrame, entry: Entry, records: int) -> None:
        """See ``Changing.change``."""
        session = changes.sparkSession

        def merge(changes: DataFrame) -> None:
            changes.createOrReplaceTempView(_SOURCE)
            with session_confs(session, {**statement_confs(entry), MATERIALIZE_SOURCE: "none"}):
                session.sql(self._statement)

        small = changes.hint("broadcast")
        self._broadcast.write(records, partial(merge, small), partial(merge, changes))


def merge_statement(address: Address, rows: Keyed, *, marked: bool) -> str:
    """The MERGE of changes into the table. Where rows may be marked as deleted (``marked``),
    those count as absent.
    """
    on = " AND ".join(f"t.{quoted(key)} = s.key_columns.{quoted(key)}" for key in rows.keys)
    clauses: list[str] = []
    if marked:
        again = {**rows.inserts, TOMBSTONE: "NULL"}
        clauses.append(
            f"WHEN MATCHED AND t.{TOMBSTONE} AND ({rows.insert}) THEN UPDATE SET {_set(again)}"
        )
    if rows.delete is not None:
        clauses.append(f"WHEN MATCHED AND ({rows.delete}) THEN DELETE")
    if rows.update is not None:
        clauses.append(f"WHEN MATCHED AND ({rows.update}) THEN UPDATE SET {_set(rows.updates)}")
    names = ", ".join(quoted(each) for each in rows.inserts)
    values = ", ".join(rows.inserts.values())
    clauses.append(f"WHEN NOT MATCHED AND {rows.insert} THEN INSERT ({names}) VALUES ({values})")
    return f"MERGE INTO {address.sql} t USING {_SOURCE} s ON {on} " + " ".join(clauses)


def _set(values: Mapping[str, str]) -> str:
    return ", ".join(f"t.{quoted(name)} = {value}" for name, value in values.items())
