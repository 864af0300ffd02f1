"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.tables import Address, quoted
from rivermouth.warehouse.spark_commits import record_entry, session_confs, statement_confs
from rivermouth.warehouse.tables import TOMBSTONE, has_mark
from rivermouth.write.arrow_batches import ArrowBatches
from rivermouth.write.evaluation import applied, grouped_counts, quarantined, refused
from rivermouth.write.files.data_files import other_records
from rivermouth.write.files.table import SmallCommits
from rivermouth.write.landing import RawBatch, Site
from rivermouth.write.landings.driver_commits import Recording, entries_way, table_of
from rivermouth.write.landings.folding import Broadcast, Folding, Sieving
from rivermouth.write.rows import OVERFLOW, Keyed

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a record folds to nothing; adaptive execution would then drop the plan and, with
# it, the counts.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_SOURCE = "rivermouth_source"


class Merge:
    """Folds a batch, materialises the changes once, and merges them.

    A batch without a good record is a commit of its entry alone. See ``Landing`` and ``Records``.
    """

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Keyed):
            raise TypeError("a MERGE lands changes by key")
        self._site = site
        self._rows = site.rows
        self._folding = Folding(site, site.rows)
        self._sieving = Sieving(site)
        self._arrow_batches = ArrowBatches(site)
        self._broadcast = Broadcast()
        self._way = entries_way(site)
        marked = has_mark(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def land(self, batch: RawBatch, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are always known: the fold comes first.

        Only a batch that is split carries to Spark what quarantine needs.
        """
        held: Counts | None = None  # how many are in quarantine already
        try:
            changes, counts = self._folded(batch, plan)
            held = counts if quarantined(counts) else None
            self._merge(changes, counts, plan)
        except Exception as fault:
            if not refused(fault):
                raise
            self._land_split(self._site.few(batch.decoded()), plan, held)

    def _folded(self, batch: RawBatch, plan: CommitPlan) -> tuple[DataFrame, Counts]:
        """The changes of a batch, written down, with its counts; bad records are in quarantine.

        Fails by ``REFUSAL`` at a bad record that the tasks do not set apart.
        """

        def fold(rows: DataFrame) -> tuple[DataFrame, Counts]:
            with self._sieving.sieve(plan) as sieve:
                if sieve is not None:
                    changes = _written_down(self._folding.sieved(rows, sieve))
                    found = self._sieving.told(sieve, plan)
            if sieve is not None:
                return changes, self._sieving.commit(found, plan)
            folded = self._folding.of(replace(batch, rows=rows), plan.draft.ranges)
            changes = _written_down(folded.changes)
            return changes, folded.counts(self._site.folded(changes))

        return self._arrow_batches.evaluated(batch.rows, fold)

    def _land_split(self, decoded: DataFrame, plan: CommitPlan, held: Counts | None) -> None:
        """Keep, count and split the batch. Of it ``held`` are in quarantine already: all bad ones
        but those of a key that overflows.
        """
        with self._site.fitted(decoded, None) as batch:
            counts, bad = grouped_counts(batch, plan.draft.ranges), "code IS NOT NULL"
            seen, before = quarantined(counts), 0
            if held is not None:
                self._check_held(held, batch, plan)
                bad, before = f"code = '{OVERFLOW}'", quarantined(held)
            if seen > before:
                self._site.quarantine.write(batch.where(bad), plan, seen - before, before)
            changes = self._rows.fold(batch.where("code IS NULL")).localCheckpoint()
        self._merge(changes, counts, plan)

    def _check_held(self, held: Counts, batch: DataFrame, plan: CommitPlan) -> None:
        """Raise BatchFailed unless the batch has just the bad records that are in quarantine."""
        others = batch.where(f"code IS NULL OR code <> '{OVERFLOW}'")
        now = [each.quarantined for each in grouped_counts(others, plan.draft.ranges)]
        before = [each.quarantined for each in held]
        if now != before:
            found = f"bad records: {before} of the ranges, and then {now}"
            raise other_records(self._site.pipeline, found)

    def _merge(self, changes: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        # A count is no reason to leave rows out: a metric may be lost.
        if applied(counts) or not changes.isEmpty():
            self.change(changes, plan.entry(counts), applied(counts))
        else:
            self._record(changes.sparkSession, plan, plan.entry(counts))

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """See ``Records.record``."""
        self._record(session, plan, plan.empty_entry())

    def _record(self, session: SparkSession, plan: CommitPlan, entry: Entry) -> None:
        # Not kept: it holds what the log says of each file of the table, and is seldom needed.
        commits = SmallCommits(table_of(self._site))
        try:
            Recording(self._site.address, self._way, commits).record(session, plan, entry)
        except CommitConflict:  # a commit by Spark that adds nothing conflicts with nobody
            record_entry(session, entry, self._site.address)

    def change(self, changes: DataFrame, entry: Entry, records: int) -> None:
        """See ``Changing.change``."""
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
