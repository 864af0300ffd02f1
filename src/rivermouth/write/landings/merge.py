"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.tables import Address, quoted
from rivermouth.warehouse.spark_commits import record_entry, session_confs, statement_confs
from rivermouth.warehouse.tables import TOMBSTONE, has_tombstone_column
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.evaluation import applied, grouped_counts, quarantined, refused
from rivermouth.write.files.bad_records import Diverted
from rivermouth.write.files.data_files import other_records
from rivermouth.write.files.table import SmallCommits
from rivermouth.write.landing import Changes, RawBatch, Site, Staged
from rivermouth.write.landings.driver_commits import Recording, entries_way, table_of
from rivermouth.write.landings.folding import Broadcast, Folding, SideOutputs
from rivermouth.write.rows import OVERFLOW, Keyed

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a record folds to nothing; adaptive execution would then drop the plan and, with
# it, the counts.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_SOURCE = "rivermouth_source"


@dataclass(frozen=True)
class Folded:
    """The changes of a batch, its counts, and the bad records that its tasks have diverted."""

    changes: DataFrame
    counts: Counts
    diverted: Diverted | None


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
        self._side_outputs = SideOutputs(site)
        self._arrow_batches = ArrowBatches(site)
        self._broadcast = Broadcast()
        self._way = entries_way(site)
        marked = has_tombstone_column(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def stage(self, batch: RawBatch | Changes, plan: CommitPlan, held: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the fold comes first.

        Only a batch that is split carries to Spark what quarantine needs.
        """
        if isinstance(batch, Changes):
            return Staged(lambda plan: self._change(batch.rows, plan.empty_entry(), batch.records))
        try:
            folded = self._folded(batch, plan)
        except Exception as fault:
            if not refused(fault):
                raise
            return self._split(batch, plan, held)
        return Staged(partial(self._commit, batch, folded, held))

    def _folded(self, batch: RawBatch, plan: CommitPlan) -> Folded:
        """The changes of a batch, written down, with its counts.

        Fails by ``REFUSAL`` at a bad record that the tasks do not divert.
        """

        def fold(rows: DataFrame) -> Folded:
            with self._side_outputs.side_output(plan) as side_output:
                if side_output is not None:
                    changes = _written_down(self._folding.with_side_output(rows, side_output))
                    found = self._side_outputs.told(side_output, plan)
                    return Folded(changes, self._side_outputs.counts(found, plan), found)
            folding = self._folding.of(replace(batch, rows=rows), plan.draft.ranges)
            changes = _written_down(folding.changes)
            return Folded(changes, folding.counts(self._site.folded(changes)), None)

        return self._arrow_batches.evaluated(batch.rows, fold)

    def _commit(self, batch: RawBatch, folded: Folded, held: ExitStack, plan: CommitPlan) -> None:
        if folded.diverted is not None:
            self._side_outputs.commit(folded.diverted, plan)
        try:
            self._merge(folded.changes, folded.counts, plan)
        except Exception as fault:
            if not refused(fault):
                raise
            there = folded.counts if quarantined(folded.counts) else None
            self._split(batch, plan, held, there).commit(plan)

    def _split(
        self, batch: RawBatch, plan: CommitPlan, held: ExitStack, there: Counts | None = None
    ) -> Staged:
        """Keep, count and split the batch. ``there`` is what is in quarantine already: all bad
        records but those of a key that overflows.
        """
        decoded = self._site.coalesced(batch.decoded())
        rows = held.enter_context(self._site.fitted(decoded, None))
        counts, bad = grouped_counts(rows, plan.draft.ranges), "code IS NOT NULL"
        seen, before = quarantined(counts), 0
        if there is not None:
            self._check_same(there, rows, plan)
            bad, before = f"code = '{OVERFLOW}'", quarantined(there)
        changes = self._rows.fold(rows.where("code IS NULL")).localCheckpoint()

        def commit(plan: CommitPlan) -> None:
            if seen > before:
                self._site.quarantine.write(rows.where(bad), plan, seen - before, before)
            self._merge(changes, counts, plan)

        return Staged(commit)

    def _check_same(self, there: Counts, batch: DataFrame, plan: CommitPlan) -> None:
        """Raise BatchFailed unless the batch has just the bad records that are in quarantine."""
        others = batch.where(f"code IS NULL OR code <> '{OVERFLOW}'")
        now = [each.quarantined for each in grouped_counts(others, plan.draft.ranges)]
        before = [each.quarantined for each in there]
        if now != before:
            found = f"bad records: {before} of the ranges, and then {now}"
            raise other_records(self._site.pipeline, found)

    def _merge(self, changes: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        # A count is no reason to leave rows out: a metric may be lost.
        if applied(counts) or not changes.isEmpty():
            self._change(changes, plan.entry(counts), applied(counts))
        else:
            self._record(changes.sparkSession, plan, plan.entry(counts))

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """See ``Landing.record``."""
        self._record(session, plan, plan.empty_entry())

    def _record(self, session: SparkSession, plan: CommitPlan, entry: Entry) -> None:
        # Not kept: it holds what the log says of each file of the table, and is seldom needed.
        commits = SmallCommits(table_of(self._site))
        try:
            Recording(self._site.address, self._way, commits).record(session, plan, entry)
        except CommitConflict:  # a commit by Spark that adds nothing conflicts with nobody
            record_entry(session, entry, self._site.address)

    def way(self) -> None:
        """See ``Landing.way``."""

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
