"""Upsert: the batch folded to one change per key, then one MERGE that carries the entry.

The fold, which ``verify`` repeats on its own: within a partition offsets order the records
of a key, and a tombstone removes all that came before it. Of what is left the greatest
rank wins: (order_by columns, topic, partition, offset), nulls lowest. A tombstone deletes
the row that stood before the batch; otherwise the winner replaces it only if it ranks higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from rivermouth.protocol.entry import Entry
from rivermouth.spark.address import quoted
from rivermouth.write.commit import (
    TOMBSTONE,
    Quarantine,
    Target,
    counted,
    counters,
    merge_confs,
    session_confs,
)

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a good record folds to nothing; adaptive execution would then drop the plan
# and, with it, the counts of the bad ones.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_BROADCAST_RECORDS_MAX = 200_000
_SOURCE = "rivermouth_source"


@dataclass(frozen=True)
class Upsert:
    """Keeps one row per key, the newest."""

    target: Target
    quarantine: Quarantine
    tombstones: bool
    """Whether a null value deletes (``source.key`` is configured)."""

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        """See ``Writer.write``. ``rows`` are always known: the fold comes first."""
        observation = Observation()
        observed = decoded.observe(observation, *counters(entry.ranges))
        good = observed.where("code IS NULL")
        folded = fold(good, self.target, tombstones=self.tombstones)
        with session_confs(decoded.sparkSession, {_ADAPTIVE_EXCLUDES: _DROP_OF_EMPTY_PLANS}):
            # The one materialisation: MERGE scans its source twice, and Kafka is no place for that.
            changes = folded.localCheckpoint()
        entry = counted(entry, observation.get)
        if any(each.quarantined for each in entry.rows or ()):
            self.quarantine.write(decoded.where("code IS NOT NULL"), entry)
        applied = sum(each.applied for each in entry.rows or ())
        small = applied <= _BROADCAST_RECORDS_MAX
        self._merge(changes.hint("broadcast") if small else changes, entry)
        return entry

    def _merge(self, changes: DataFrame, entry: Entry) -> None:
        session = changes.sparkSession
        changes.createOrReplaceTempView(_SOURCE)
        confs = {**merge_confs(entry), MATERIALIZE_SOURCE: "none"}
        with session_confs(session, confs):
            session.sql(merge_statement(self.target))


def fold(good: DataFrame, target: Target, *, tombstones: bool) -> DataFrame:
    """One row per key: ``key_columns``, ``had_tombstone``, and the winning ``change``.

    ``change`` STRUCT<row, _kafka> is null where nothing came after the last tombstone.
    """
    keyed = good.select("key_columns", "row", "_kafka", "tombstone")
    if tombstones:
        keyed = _after_tombstones(keyed)
    winner = F.max_by(
        F.when(~F.col("tombstone"), F.struct("row", "_kafka")),
        F.when(~F.col("tombstone"), _rank(target.order_by, F.col("row"))),
    )
    had_tombstone = F.bool_or("tombstone")
    return keyed.groupBy("key_columns").agg(
        had_tombstone.alias("had_tombstone"), winner.alias("change")
    )


def _after_tombstones(keyed: DataFrame) -> DataFrame:
    """Drop what a later tombstone of the same key and partition removes."""
    offset = F.col("_kafka").getField("offset")
    here = Window.partitionBy(
        "key_columns", F.col("_kafka").getField("topic"), F.col("_kafka").getField("partition")
    )
    last = F.max(F.when(F.col("tombstone"), offset)).over(here)
    return keyed.withColumn("last", last).where(F.col("last").isNull() | (offset >= F.col("last")))


def _rank(order_by: Sequence[str], row: Column) -> Column:
    kafka = F.col("_kafka")
    place = [kafka.getField(name).alias(name) for name in ("topic", "partition", "offset")]
    return F.struct(*(row.getField(n).alias(f"o{i}") for i, n in enumerate(order_by)), *place)


def merge_statement(target: Target) -> str:
    """The MERGE. Where rows may be marked as deleted, those count as absent."""
    columns = [quoted(each) for each in target.columns]
    on = " AND ".join(f"t.{quoted(key)} = s.key_columns.{quoted(key)}" for key in target.keys)
    updates = ", ".join(f"t.{each} = s.change.row.{each}" for each in columns)
    inserts = ", ".join([*columns, "_kafka"])
    values = ", ".join([*(f"s.change.row.{each}" for each in columns), "s.change._kafka"])
    wins = f"s.had_tombstone OR {outranks('s.change.row', 's.change._kafka', 't', target)}"
    if target.marked:
        updates += f", t.{TOMBSTONE} = NULL"
        wins = f"t.{TOMBSTONE} OR {wins}"
    return f"""
        MERGE INTO {target.address.sql} t USING {_SOURCE} s ON {on}
        WHEN MATCHED AND s.change IS NULL THEN DELETE
        WHEN MATCHED AND ({wins})
            THEN UPDATE SET {updates}, t._kafka = s.change._kafka
        WHEN NOT MATCHED AND s.change IS NOT NULL THEN INSERT ({inserts}) VALUES ({values})
    """


def outranks(row: str, kafka: str, standing: str, target: Target) -> str:
    """The condition under which a change replaces the row that stands."""
    offered = _sql_rank(row, kafka, target)
    return f"{offered} > {_sql_rank(standing, f'{standing}._kafka', target)}"


def _sql_rank(row: str, kafka: str, target: Target) -> str:
    orders = [f"{row}.{quoted(each)}" for each in target.order_by]
    place = [f"{kafka}.{name}" for name in ("topic", "partition", "offset")]
    return f"struct({', '.join([*orders, *place])})"
