"""Changes by key where no session conf may be set, so that a MERGE could carry no entry.

An engine that does not know ``replaceUsing`` passes over the option and overwrites the whole
table. No version number tells: those of Databricks' serverless compute say nothing of it, and a
Spark Connect server may be anybody's. So it is tried, once for each engine, and noted in the
target's properties.

The batch is folded and staged in files, once. Joined with the table it gives the rows as they
are to be, and Delta's writer replaces by key (``replaceUsing``) in one commit with the entry.
That write cannot delete: a row to delete stays, marked in the column ``_tombstone``, and a
DELETE of all marked rows follows. Nothing rests on the DELETE: a marked row counts as absent,
and whoever runs it, and when, it removes nothing else.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.debug import reach
from rivermouth.errors import UpsertUnsupported
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts, Entry
from rivermouth.spark.errors import reason
from rivermouth.spark.tables import Address, literal, set_table_property, table_property
from rivermouth.warehouse.spark_commits import writer_options
from rivermouth.warehouse.tables import TOMBSTONE, add_tombstone_column, has_tombstone_column
from rivermouth.write.evaluation import applied, staged
from rivermouth.write.landing import CountedBatch, RawBatch, Site, Staged
from rivermouth.write.landings.folding import Broadcast, Folding, fold_or_split, too_large
from rivermouth.write.rows import Keyed, same_key, with_old_rows

PROVEN = "rivermouth.replaces"
"""The target's property: the engine that was found to replace by key."""
_EXPECTED = "row 1 replaced once, row 2 kept, the commit's metadata recorded"


def check_replace(session: SparkSession, target: Address) -> None:
    """Raise UpsertUnsupported where an upsert would lose rows or its ledger entry.

    ``target`` is a table in a catalog; the table that is tried lies beside it, for a moment.
    """
    engine = str(session.sql("SELECT version()").collect()[0][0])
    if table_property(session, target, PROVEN) == engine:
        return
    *schema, name = target.name
    probe = replace(target, name=(*schema, f"{name}_probe_{uuid.uuid4().hex[:8]}"))
    found = _tried(session, probe)
    if found != _EXPECTED:
        raise UpsertUnsupported(
            "this engine does not replace rows by key as an upsert needs it",
            where=str(target),
            expected=_EXPECTED,
            found=f"{found}, by Spark {engine}",
        )
    set_table_property(session, target, PROVEN, engine)


def _tried(session: SparkSession, probe: Address) -> str:
    """What became of two rows: ``_EXPECTED``, or what else."""
    two = "VALUES (1, 'old'), (2, 'old') AS t(k, v)"
    session.sql(f"CREATE TABLE {probe.sql} USING delta AS SELECT * FROM {two}")
    options = {"replaceUsing": "k", "txnAppId": probe.name[-1], "txnVersion": "1"}
    try:
        for value in ("new", "again"):  # the second is a retry of the first
            row = session.sql(f"SELECT 1 AS k, {literal(value)} AS v")
            probe.write(row.write.mode("overwrite").options(**options, userMetadata=value))
        rows = sorted((each["k"], each["v"]) for each in probe.read(session).collect())
        newest = session.sql(f"DESCRIBE HISTORY {probe.sql} LIMIT 1").collect()[0]
        noted = newest["userMetadata"]
    finally:
        session.sql(f"DROP TABLE IF EXISTS {probe.sql}")
    works = rows == [(1, "new"), (2, "old")] and noted == "new"
    return _EXPECTED if works else f"rows {rows}, metadata {noted}"


_VECTORS = "delta.enableDeletionVectors"


def replace_using(site: Site) -> ReplaceUsing:
    """The landing, where engine, configuration and table are fit for it.

    Raises UpsertUnsupported.
    """
    if not isinstance(site.rows, Keyed):
        raise TypeError("replaceUsing lands changes by key")
    if site.others:
        raise UpsertUnsupported(
            "through Spark Connect only one pipeline can upsert into a table",
            where=f"{site.pipeline.name} {site.address}",
            found=f"{site.others[0]}, which could replace what this one replaces",
            remedy="Use one pipeline and a new table, or a cluster in dedicated mode",
        )
    check_replace(site.session, site.address)
    if site.rows.delete is not None:  # rows are deleted, and no MERGE can do it
        add_tombstone_column(site.session, site.address)
    return ReplaceUsing(
        site,
        site.rows,
        marked=has_tombstone_column(site.session, site.address),
        vectors=table_property(site.session, site.address, _VECTORS) == "true",
    )


class ReplaceUsing:
    """Stages the changes of a batch and replaces the rows that they touch. See ``Landing``.

    The table may have rows that are ``marked`` as deleted, and deletion ``vectors``.
    """

    def __init__(self, site: Site, rows: Keyed, *, marked: bool, vectors: bool = False) -> None:
        self._site = site
        self._rows = rows
        self._marked = marked
        self._vectors = vectors
        self._broadcast = Broadcast()
        self._folding = Folding(site, rows)
        self._sweep = rows.delete is not None  # a driver that died may have left marked rows

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """See ``Landing.stage``. The counts are always known: the fold comes first.

        Only a batch with bad records carries what quarantine needs.
        """

        fold = partial(self._folded, batch, plan, stack)
        split = partial(self._split, batch, plan, stack)
        return fold_or_split(fold, split, self._counted, after=self._remove_marked)

    def _folded(
        self, batch: RawBatch, plan: CommitPlan, stack: ExitStack
    ) -> tuple[DataFrame, Counts]:
        """The changes of a batch, in files, with its counts. Fails at a bad record."""
        deletes = self._rows.delete is not None
        more = {"deleting": F.count_if("tombstone")} if deletes else {}
        folded = self._folding.of(batch.rows, plan.draft.ranges, **more)
        # The one materialisation: the join and Delta's writer evaluate their source again.
        folder = self._site.stage / f"{plan.commit}-changes"
        changes = stack.enter_context(staged(folded.changes, folder))
        if deletes and folded.counting.metric("deleting") != 0:
            self._sweep = True
        return changes, self._folding.counts(folded, changes)

    def _split(
        self, batch: RawBatch, plan: CommitPlan, stack: ExitStack
    ) -> tuple[CountedBatch, DataFrame]:
        """The batch, kept and counted, and the changes of its good records, in files."""
        self._sweep = self._sweep or self._rows.delete is not None
        rows = self._site.counted(batch.decoded(), plan, stack)
        folder = self._site.stage / f"{plan.commit}-good"
        return rows, stack.enter_context(staged(self._rows.fold(rows.good), folder))

    def _counted(self, changes: DataFrame, counts: Counts, plan: CommitPlan) -> None:
        self._write(changes, plan.entry(counts), applied(counts))

    def _write(self, folded: DataFrame, entry: Entry, records: int) -> None:
        table = self._site.address.read(folded.sparkSession)
        options = {"replaceUsing": ",".join(self._rows.keys), **writer_options(entry)}

        def replace(*, small: bool, keys: str) -> None:
            rows = replaced_rows(folded, table, self._rows, marked=self._marked, small=small)
            self._site.address.write(rows.hint(keys).write.mode("overwrite").options(**options))

        # Delta joins the table with the keys of these rows, to find the files that it replaces. It
        # asks for the name of the file above that join, where a shuffle has lost it, unless the
        # table has deletion vectors. So the keys are broadcast.
        small = partial(replace, small=True, keys="broadcast")
        if self._vectors:
            large = partial(replace, small=False, keys="merge")
        else:
            large = partial(self._by_broadcast, partial(replace, small=False, keys="broadcast"))
        self._broadcast.write(records, small, large)

    def _by_broadcast(self, replace: Callable[[], None]) -> None:
        """The last way of a table without deletion vectors. Raises UpsertUnsupported."""
        try:
            replace()
        except Exception as fault:
            if not too_large(fault):
                raise
            raise UpsertUnsupported(
                "the keys of one batch are more than Spark broadcasts; without a broadcast this "
                "engine replaces rows only in a table with deletion vectors",
                where=f"{self._site.pipeline.name} {self._site.address}",
                found=reason(fault),
                remedy="Set the table property delta.enableDeletionVectors to true, or let a batch "
                "have fewer records (max_offsets_per_trigger; --from of a replay)",
            ) from fault

    def _remove_marked(self, plan: CommitPlan) -> None:
        """Remove the rows that are marked as deleted, once their commit was read back."""
        reach("P13")
        if self._sweep:
            table = self._site.address.sql
            self._site.session.sql(f"DELETE FROM {table} WHERE {TOMBSTONE}").collect()
            self._sweep = False


def replaced_rows(
    changes: DataFrame, table: DataFrame, rows: Keyed, *, marked: bool, small: bool
) -> DataFrame:
    """The rows of ``table`` that ``changes`` (see ``Keyed.fold``) touch, as they are to be.

    The same columns in the same order. A row to delete comes with the mark. If the changes are
    ``small``, they are broadcast, and the table is not shuffled.
    """
    there = table.where(F.col(TOMBSTONE).isNull()) if marked else table
    joined = (_with_broadcast if small else with_old_rows)(changes, there, rows.keys)
    absent = F.col("t").isNull()
    deleted = ~absent & F.expr(rows.delete or "false")
    updated = ~absent & F.expr(rows.update or "false")
    touched = deleted | updated | (absent & F.expr(rows.insert))
    columns = [
        _column(name, absent, deleted, rows, marked=marked).alias(name) for name in table.columns
    ]
    return joined.where(touched).select(*columns)


def _with_broadcast(changes: DataFrame, table: DataFrame, keys: Sequence[str]) -> DataFrame:
    """``with_old_rows`` without a shuffle of the table; its key columns are read twice.

    Spark never broadcasts the side of an outer join of which it keeps all rows. So the changes are
    broadcast to an inner join, and those that touch no row are added.
    """
    new = changes.select(F.struct(*changes.columns).alias("s"))
    old = table.select(F.struct(*table.columns).alias("t"))
    touching = old.join(new.hint("broadcast"), same_key("t", keys)).select("s", "t")
    found = touching.select(F.col("s").getField("key_columns").alias("found"))
    others = new.join(found.hint("broadcast"), same_key("found", keys), "left_anti")
    return touching.union(others.select("s", F.lit(None).alias("t")))


def _column(name: str, absent: Column, deleted: Column, rows: Keyed, *, marked: bool) -> Column:
    if name == TOMBSTONE and marked:
        return F.when(deleted, F.lit(True))
    old = F.col("t").getField(name)  # what a column of others holds, stays
    inserted = F.expr(rows.inserts[name]) if name in rows.inserts else old
    updated = F.expr(rows.updates[name]) if name in rows.updates else old
    return F.when(deleted, old).when(absent, inserted).otherwise(updated)
