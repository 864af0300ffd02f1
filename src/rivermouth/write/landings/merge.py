"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.tables import Address, quoted
from rivermouth.warehouse.spark_commits import record_entry, session_confs, statement_confs
from rivermouth.warehouse.tables import TOMBSTONE, has_tombstone_column
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.evaluation import applied, grouped_counts, quarantined, unless_refused
from rivermouth.write.files.bad_records import Diverted
from rivermouth.write.files.data_files import other_records
from rivermouth.write.landing import CountedBatch, RawBatch, Site, Staged
from rivermouth.write.landings.driver_commits import Recording
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
        marked = has_tombstone_column(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def stage_changes(
        self, changes: DataFrame, records: int, plan: CommitPlan, stack: ExitStack
    ) -> Staged:
        """See ``KeyedLanding.stage_changes``."""
        return Staged(lambda plan: self._change(changes, plan.empty_entry(), records))

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the fold comes first.

        Only a batch that is split carries to Spark what quarantine needs.
        """

        def fold() -> Staged:
            return Staged(partial(self._commit, batch, self._folded(batch, plan), stack))

        return unless_refused(fold, lambda: self._split(batch, plan, stack))

    def _folded(self, batch: RawBatch, plan: CommitPlan) -> Folded:
        """The changes of a batch, written down, with its counts.

        Fails by ``REFUSAL`` at a bad record that the tasks do not divert.
        """

        def folded(rows: DataFrame) -> Folded:
            with self._side_outputs.side_output(plan) as side_output:
                if side_output is not None:
                    changes = _written_down(self._folding.with_side_output(rows, side_output))
                    found = self._side_outputs.reported(side_output, plan)
                    return Folded(changes, self._side_outputs.counts(found, plan), found)
            fold = self._folding.of(rows, plan.draft.ranges)
            changes = _written_down(fold.changes)
            return Folded(changes, self._folding.counts(fold, changes), None)

        return self._arrow_batches.evaluated(batch.rows, folded)

    def _commit(self, batch: RawBatch, folded: Folded, stack: ExitStack, plan: CommitPlan) -> None:
        if folded.diverted is not None:
            self._side_outputs.commit(folded.diverted, plan)
        written = folded.counts if quarantined(folded.counts) else None
        unless_refused(
            lambda: self._merge(folded.changes, folded.counts, plan),
            lambda: self._split(batch, plan, stack, written).commit(plan),
        )

    def _split(
        self, batch: RawBatch, plan: CommitPlan, stack: ExitStack, written: Counts | None = None
    ) -> Staged:
        """Keep, count and split the batch. ``written`` is what is in quarantine already: all bad
        records but those of a key that overflows.
        """
        rows = self._site.counted(batch.decoded(), plan, stack)
        if written is not None:
            self._check_same(written, rows.rows, plan)
        changes = self._rows.fold(rows.good).localCheckpoint()

        def commit(plan: CommitPlan) -> None:
            if written is None:
                rows.write_bad(plan)
            else:
                self._write_overflowing(rows, quarantined(written), plan)
            self._merge(changes, rows.counts, plan)

        return Staged(commit)

    def _write_overflowing(self, rows: CountedBatch, before: int, plan: CommitPlan) -> None:
        """Put these into quarantine, where ``before`` others of the batch are already."""
        if more := quarantined(rows.counts) - before:
            overflowing = rows.rows.where(f"code = '{OVERFLOW}'")
            self._site.quarantine.write(overflowing, plan, more, before)

    def _check_same(self, written: Counts, batch: DataFrame, plan: CommitPlan) -> None:
        """Raise BatchFailed unless the batch has just the bad records that are in quarantine."""
        others = batch.where(f"code IS NULL OR code <> '{OVERFLOW}'")
        now = [each.quarantined for each in grouped_counts(others, plan.draft.ranges)]
        before = [each.quarantined for each in written]
        if now != before:
            found = f"bad records: {before} of the ranges, and then {now}"
            raise other_records(self._site.pipeline.name, found)

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
            Recording(site).record(site.session, plan, entry)
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
