"""Upsert where no session conf may be set, so that a MERGE could carry neither ``txn`` nor entry.

The batch is folded as in ``upsert`` and staged in files, once. Joined with the table it gives
the rows as they are to be, and Delta's writer replaces by key (``replaceUsing``) in one commit
with the entry. That write cannot delete: a row that a tombstone removes stays, marked in the
column ``_tombstone``, and a DELETE of all marked rows follows. Nothing rests on the DELETE: a
marked row counts as absent, and whoever runs it, and when, it removes nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from rivermouth.debug.failpoints import reach
from rivermouth.protocol.entry import Entry
from rivermouth.write.commit import (
    TOMBSTONE,
    Quarantine,
    Target,
    counted,
    counters,
    writer_options,
)
from rivermouth.write.latest import fold, outranks

_SMALL = 200_000
"""Records of a batch up to which its changes are sent to every task of the join."""


class Replace:
    """Keeps one row per key, the newest. ``tombstones``: whether a null value deletes.

    ``stage`` is a folder of this run alone that driver and executors see by the same path.
    """

    def __init__(
        self, target: Target, quarantine: Quarantine, stage: Path, *, tombstones: bool
    ) -> None:
        self._target = target
        self._quarantine = quarantine
        self._stage = stage
        self._tombstones = tombstones
        self._sweep = tombstones  # a driver that died may have left marked rows

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        """See ``Writer.write``. ``rows`` are always known: the fold comes first."""
        session = decoded.sparkSession
        observation = Observation()
        buried = F.count_if(F.col("tombstone") & F.col("code").isNull()).alias("buried")
        observed = decoded.observe(observation, *counters(entry.ranges), buried)
        folded = fold(observed.where("code IS NULL"), self._target, tombstones=self._tombstones)
        with self._staged(session, folded, entry) as changes:
            metrics = observation.get or _counted_anew(decoded, entry, buried)
            entry = counted(entry, metrics)
            if any(each.quarantined for each in entry.rows or ()):
                self._quarantine.write(decoded.where("code IS NOT NULL"), entry)
            small = sum(each.applied for each in entry.rows or ()) <= _SMALL
            self._commit(changes.hint("broadcast") if small else changes, entry)
        self._sweep = self._sweep or metrics["buried"] > 0
        self._remove_marked(session)
        return entry

    @contextmanager
    def _staged(
        self, session: SparkSession, folded: DataFrame, entry: Entry
    ) -> Iterator[DataFrame]:
        """The one materialisation: the join and Delta's writer evaluate their source again."""
        path = self._stage / entry.commit
        files = f"file:{path}" if not path.is_relative_to("/Volumes") else str(path)
        try:
            folded.write.parquet(files)
            # A file that is gone is an error, whatever the session says: it holds changes.
            strict = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
            yield session.read.schema(folded.schema).options(**strict).parquet(files)
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _commit(self, changes: DataFrame, entry: Entry) -> None:
        table = self._target.address.read(changes.sparkSession)
        rows = replaced_rows(changes, table, self._target)
        keys = {"replaceUsing": ",".join(self._target.keys)}
        writer = rows.write.mode("overwrite").options(**keys, **writer_options(entry))
        self._target.address.write(writer)

    def _remove_marked(self, session: SparkSession) -> None:
        reach("P13")
        if self._sweep:
            session.sql(f"DELETE FROM {self._target.address.sql} WHERE {TOMBSTONE}").collect()
            self._sweep = False


def _counted_anew(decoded: DataFrame, entry: Entry, buried: Column) -> dict[str, int]:
    """What ``observe`` would have counted: of a batch without a good record Spark drops the plan
    while it runs, and the counts with it (``upsert`` forbids it that by a session conf).
    """
    return decoded.agg(*counters(entry.ranges), buried).collect()[0].asDict()


def replaced_rows(changes: DataFrame, table: DataFrame, target: Target) -> DataFrame:
    """The rows of ``table`` that ``changes`` (see ``upsert.fold``) touch, as they are to be.

    The same columns in the same order. A row to delete comes with the mark.
    """
    there = table.where(F.col(TOMBSTONE).isNull()) if target.marked else table
    old = there.select(F.struct(*there.columns).alias("t"))
    on = [F.col("t").getField(k) == F.col("key_columns").getField(k) for k in target.keys]
    joined = changes.join(old, on, "left")
    absent, change = F.col("t").isNull(), F.col("change")
    deleted = change.isNull() & ~absent
    newer = F.expr(outranks("change.row", "change._kafka", "t", target))
    wins = absent | F.col("had_tombstone") | newer
    touched = joined.where(deleted | (change.isNotNull() & wins))
    return touched.select(*(_column(each, deleted, target) for each in table.columns))


def _column(name: str, deleted: Column, target: Target) -> Column:
    if name == TOMBSTONE and target.marked:
        return F.when(deleted, F.lit(True)).alias(name)
    old = F.col("t").getField(name)
    if name in target.columns:
        new = F.col("change").getField("row").getField(name)
    elif name == "_kafka":
        new = F.col("change").getField("_kafka")
    else:  # a column of others: what it holds stays
        new = old
    return F.when(deleted, old).otherwise(new).alias(name)
