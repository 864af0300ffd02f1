"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.tables import Address, quoted
from rivermouth.warehouse.spark_commits import record_entry, session_confs, statement_confs
from rivermouth.warehouse.tables import TOMBSTONE, has_tombstone_column
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.evaluation import applied
from rivermouth.write.landing import CountedBatch, RawBatch, Site, Staged
from rivermouth.write.landings.driver_commits import Recording
from rivermouth.write.landings.folding import Broadcast, Folding, fold_or_split
from rivermouth.write.rows import Keyed

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a record folds to nothing; adaptive execution would then drop the plan and, with
# it, the counts.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_SOURCE = "rivermouth_source"


class Merge:
    """Folds a batch, materialises the changes once, and merges them.

    A batch without a good record is a commit of its entry alone. See ``Landing``.
    """

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Keyed):
            raise TypeError("a MERGE lands changes by key")
        self._site = site
        self._rows = site.rows
        self._folding = Folding(site, site.rows)
        self._arrow_batches = ArrowBatches(site)
        self._broadcast = Broadcast()
        marked = has_tombstone_column(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def stage_changes(
        self, changes: DataFrame, records: int, plan: CommitPlan, stack: ExitStack
    ) -> Staged:
        """Stage ``changes`` that were folded before (``Keyed.fold``), of about so many ``records``.

        They are read several times. The entry of their commit has no counts.
        """
        return Staged(lambda plan: self._change(changes, plan.empty_entry(), records))

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the fold comes first.

        Only a batch that is split carries to Spark what quarantine needs.
        """

        fold, split = partial(self._folded, batch, plan), partial(self._split, batch, plan, stack)
        return fold_or_split(fold, split, self._merge)

    def _folded(self, batch: RawBatch, plan: CommitPlan) -> tuple[DataFrame, Counts]:
        """The changes of a batch, written down, with its counts. Fails at a bad record."""

        def folded(rows: DataFrame) -> tuple[DataFrame, Counts]:
            fold = self._folding.of(rows, plan.draft.ranges)
            changes = _written_down(fold.changes)
            return changes, self._folding.counts(fold, changes)

        return self._arrow_batches.evaluated(batch.rows, folded)

    def _split(
        self, batch: RawBatch, plan: CommitPlan, stack: ExitStack
    ) -> tuple[CountedBatch, DataFrame]:
        """The batch, kept and counted, and the changes of its good records."""
        rows = self._site.counted(batch.decoded(), plan, stack)
        return rows, self._rows.fold(rows.good).localCheckpoint()

    def _merge(self, changes: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        # A count is no reason to leave rows out: a metric may be lost.
        if applied(counts) or not changes.isEmpty():
            self._change(changes, plan.entry(counts), applied(counts))
        else:
            self._record(plan, plan.entry(counts))

    def _record(self, plan: CommitPlan, entry: Entry) -> None:
        site = self._site
        try:
            # Not kept: it holds what the log says of each file of the table, and is seldom needed.
            Recording(site).record(plan, entry)
        except CommitConflict:  # a commit by Spark that adds nothing conflicts with nobody
            record_entry(site.session, entry, site.address)

    def _change(self, changes: DataFrame, entry: Entry, records: int) -> None:
        session = changes.sparkSession

        def merge(changes: DataFrame) -> None:
            changes.createOrReplaceTempView(_SOURCE)
            with session_confs(session, {**statement_confs(entry), MATERIALIZE_SOURCE: "none"}):
                session.sql(self._statement)

        small = changes.hint("broadcast")
        self._broadcast.write(records, partial(merge, small), partial(merge, changes))


def _written_down(changes: DataFrame) -> DataFrame:
    """The one evaluation of a batch: MERGE scans its source twice, and Kafka is no place for it."""
    with session_confs(changes.sparkSession, {_ADAPTIVE_EXCLUDES: _DROP_OF_EMPTY_PLANS}):
        return changes.localCheckpoint()


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
