"""One row per key: the newest (``upsert``), or the first (``insert``). ``verify`` repeats these.

The newest: within a partition offsets order the records of a key, and a tombstone removes all that
came before it. Of what is left the greatest (order_by columns, topic, partition, offset) wins,
nulls lowest. A tombstone deletes the row that stood before the batch; otherwise the winner replaces
it if it is newer. An event that deletes (``source.envelope``) is ordered as rows are: where it
wins, the row goes. Without ``order_by`` the winner always is newer: the ledger's order decides
between batches. A key that moves to another partition, as it may when partitions are added, would
otherwise keep its old row for ever.

The first: of the records of a key in one batch that of the least (topic, partition, offset), and a
key that has a row already keeps it.

Reapplied, to mend rows that others have spoilt: each key gets the row that its records leave, and a
right row is not written. The records are those of whole entries, and each is given the sequence of
its entry, since entries decide in their order. Of the newest rows only the records from the last
deciding entry of a key on count. The first rows need the records of all entries: else the record of
a later one would become the row of a key that has lost its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from rivermouth.config import Column as TableColumn
from rivermouth.config import Pipeline
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.tables import literal, quoted
from rivermouth.write.keys.by_row import ByRow
from rivermouth.write.keys.entries import Fold
from rivermouth.write.rows import RECORDS, Keyed


def latest(pipeline: Pipeline) -> Keyed:
    """The changes of a batch, one per key. Null values delete where ``source.key`` is set, and
    events do where there is an envelope.
    """
    order_by, tombstones = pipeline.target.order_by, pipeline.source.key is not None
    names = [each.name for each in pipeline.columns]
    values = {name: f"s.change.row.{quoted(name)}" for name in names}
    ranks = _rank("s.change.row", "s.change._kafka", order_by), _rank("t", "t._kafka", order_by)
    newer = f"s.had_tombstone OR {' > '.join(ranks)}" if order_by else "s.change IS NOT NULL"
    deletes = tombstones or pipeline.source.envelope is not None
    return Keyed(
        keys=pipeline.target.keys,
        fold=partial(fold, order_by=order_by, tombstones=tombstones, kept=pipeline.kept),
        inserts={**values, **_kept(pipeline), "_kafka": "s.change._kafka"},
        insert="NOT coalesce(s.change.gone, true)",
        update=newer,
        updates={**values, **_kept(pipeline, standing=True), "_kafka": "s.change._kafka"},
        delete=f"s.change IS NULL OR (s.change.gone AND ({newer}))" if deletes else None,
        by_files=ByRow(pipeline.target.keys, Fold(order_by=order_by)),
    )


def _kept(pipeline: Pipeline, *, standing: bool = False) -> dict[str, str]:
    """The values of columns that an event may not tell, see ``write.keys.untold``; ``standing``: a
    row of the key stands.
    """
    order_by = pipeline.target.order_by
    rank = _rank("t", "t._kafka", order_by)
    told, older = "s.told.{0}.rank", "s.floor IS NULL"
    known = f"({older} OR {told} > s.floor)"
    if standing and order_by:
        known += f" AND {told} > {rank}"
        older += f" OR {rank} > s.floor"
    value = "CASE WHEN NOT coalesce(array_contains(s.change.kept, {1}), false)"
    value += f" THEN s.change.row.{{0}} WHEN {told} IS NOT NULL AND {known} THEN s.told.{{0}}.value"
    value += f" WHEN NOT s.had_tombstone AND ({older}) THEN t.{{0}}" if standing else ""
    value += " ELSE s.change.row.{0} END"
    return {each: value.format(quoted(each), literal(each)) for each in pipeline.kept}


def fold(
    good: DataFrame, order_by: Sequence[str], *, tombstones: bool, kept: Sequence[str] = ()
) -> DataFrame:
    """One row per key: ``key_columns``, ``records``, ``had_tombstone``, and the newest ``change``.

    ``change`` STRUCT<row, _kafka, gone> is null where nothing came after the last tombstone.
    ``gone``: it is an event that deletes, and not one of the ``tombstones``. Where events may not
    tell ``kept`` columns, ``change`` has the names of those, ``told`` the newest ``value`` of each
    with its ``rank``, and ``floor`` is the rank of the newest event that deletes.
    """
    names = ("key_columns", "row", "_kafka", "tombstone", *(("kept",) if kept else ()))
    keyed, stands = good.select(*names), F.lit(True)
    is_event = F.col("row").isNotNull()
    gone, dead = F.col("tombstone") & is_event, F.col("tombstone") & ~is_event
    if tombstones:
        keyed = _with_last_tombstone(keyed, dead)
        stands = is_event & (F.col("last").isNull() | (_offset() > F.col("last")))
    rank = _rank_column(order_by)
    change = F.struct("row", "_kafka", gone.alias("gone"), *(("kept",) if kept else ()))
    newest = F.max_by(F.when(stands, change), F.when(stands, rank))
    had = F.bool_or(dead) if tombstones else F.lit(False)
    told = [_told(each, rank, stands & ~gone).alias(each) for each in kept]
    floor = F.max(F.when(stands & gone, rank))
    return keyed.groupBy("key_columns").agg(
        F.count("*").alias(RECORDS),
        had.alias("had_tombstone"),
        newest.alias("change"),
        *((F.struct(*told).alias("told"), floor.alias("floor")) if told else ()),
    )


def _told(column: str, rank: Column, put: Column) -> Column:
    """The newest value of a column among the rows ``put`` that tell it; null where none does."""
    tells = put & ~F.coalesce(F.array_contains("kept", column), F.lit(False))
    value = F.struct(F.col("row").getField(column).alias("value"), rank.alias("rank"))
    return F.max_by(F.when(tells, value), F.when(tells, rank))


def _with_last_tombstone(keyed: DataFrame, dead: Column) -> DataFrame:
    """With ``last``, the offset of the last tombstone of the same key and partition, or null."""
    here = Window.partitionBy(
        "key_columns", F.col("_kafka").getField("topic"), F.col("_kafka").getField("partition")
    )
    return keyed.withColumn("last", F.max(F.when(dead, _offset())).over(here))


def _offset() -> Column:
    return F.col("_kafka").getField("offset")


def _rank_column(order_by: Sequence[str]) -> Column:
    row, kafka = F.col("row"), F.col("_kafka")
    place = [kafka.getField(name).alias(name) for name in ("topic", "partition", "offset")]
    return F.struct(*(row.getField(n).alias(f"o{i}") for i, n in enumerate(order_by)), *place)


def _rank(row: str, kafka: str, order_by: Sequence[str]) -> str:
    """The same rank in SQL, of a change or of the row that stands."""
    orders = [f"{row}.{quoted(each)}" for each in order_by]
    place = [f"{kafka}.{name}" for name in ("topic", "partition", "offset")]
    return f"struct({', '.join([*orders, *place])})"


def first(pipeline: Pipeline) -> Keyed:
    """One row per key of a batch, which is added where the table has no row of that key."""
    values = {each.name: f"s.change.row.{quoted(each.name)}" for each in pipeline.columns}
    return Keyed(
        keys=pipeline.target.keys,
        fold=first_of,
        inserts={**values, "_kafka": "s.change._kafka"},
        by_files=ByRow(pipeline.target.keys, Fold(first=True)),
    )


def first_of(good: DataFrame, *before: str) -> DataFrame:
    """One row per key: ``key_columns``, ``records``, and the first ``change`` (row, _kafka).

    The columns ``before`` decide before the place of a record does.
    """
    kafka = F.col("_kafka")
    place = (kafka.getField(name) for name in ("topic", "partition", "offset"))
    return good.groupBy("key_columns").agg(
        F.count("*").alias(RECORDS),
        F.min_by(F.struct("row", "_kafka"), F.struct(*before, *place)).alias("change"),
    )


_AS_JSON = (
    "map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
"""To the microsecond: by itself Spark writes milliseconds."""
_STARTS = "topic STRING, partition INT, at BIGINT, sequence BIGINT"


def differs(columns: Sequence[TableColumn]) -> str:
    """SQL: whether the row ``t`` is another one than that of the record ``s.change``."""
    return f"({' OR '.join([*map(_one_differs, columns), 'NOT (t._kafka <=> s.change._kafka)'])})"


def _one_differs(column: TableColumn) -> str:
    new, old = f"s.change.row.{quoted(column.name)}", f"t.{quoted(column.name)}"
    if "MAP<" in column.type:  # maps cannot be compared
        new, old = (f"to_json(named_struct('c', {each}), {_AS_JSON})" for each in (new, old))
    return f"NOT ({old} <=> {new})"


def with_sequence(rows: DataFrame, of_entries: Sequence[tuple[int, OffsetRange]]) -> DataFrame:
    """With ``sequence``, that of the entry that covers the record.

    The starts of the ranges lie between the records of their partition, so one sort tells it:
    however many entries there are.
    """
    listed = [(one.topic, one.partition, one.from_offset, number) for number, one in of_entries]
    starts = rows.sparkSession.createDataFrame(listed, _STARTS)
    place = [F.col("_kafka").getField(name) for name in ("topic", "partition", "offset")]
    names = [each.strip().split()[0] for each in _STARTS.split(",")[:3]]
    placed = rows.select("*", *(each.alias(name) for each, name in zip(place, names, strict=True)))
    both = placed.unionByName(starts, allowMissingColumns=True)
    # A start comes before the record of the same offset.
    along = Window.partitionBy("topic", "partition").orderBy("at", F.col("_kafka").isNotNull())
    until_here = along.rowsBetween(Window.unboundedPreceding, 0)
    latest_start = F.last("sequence", ignorenulls=True).over(until_here)
    return both.withColumn("sequence", latest_start).where("_kafka IS NOT NULL").drop(*names)


def latest_reapplied(pipeline: Pipeline, of_entries: Sequence[tuple[int, OffsetRange]]) -> Keyed:
    """The changes that mend the table; ``of_entries`` are the ranges of entries by sequence."""
    known, ordered = latest(pipeline), bool(pipeline.target.order_by)
    tombstones = pipeline.source.key is not None
    update = differs(pipeline.columns)
    if ordered:
        update = f"({known.update} OR {_SAME_RECORD}) AND {update}"

    def fold(good: DataFrame) -> DataFrame:
        slim = good.select("key_columns", "row", "_kafka", "tombstone")
        if len({sequence for sequence, _ in of_entries}) > 1 and (tombstones or not ordered):
            slim = _deciding(with_sequence(slim, of_entries), ordered=ordered)
        return known.fold(slim)

    return replace(known, fold=fold, update=update, by_files=None)


_SAME_RECORD = (
    "(t._kafka.topic = s.change._kafka.topic AND t._kafka.partition = s.change._kafka.partition"
    " AND t._kafka.offset = s.change._kafka.offset)"
)
"""The row is that of this record: what differs in it, somebody else has changed."""


def _deciding(rows: DataFrame, *, ordered: bool) -> DataFrame:
    """The records of each key from its deciding entry on: the last one with a tombstone of it, or,
    without ``order_by``, the last one with any record.
    """
    counted = F.when(F.col("tombstone"), F.col("sequence")) if ordered else F.col("sequence")
    decides = F.max(counted).over(Window.partitionBy("key_columns"))
    judged = rows.withColumn("decides", F.coalesce(decides, F.lit(0)))
    return judged.where("sequence >= decides").drop("sequence", "decides")


def first_reapplied(pipeline: Pipeline, of_entries: Sequence[tuple[int, OffsetRange]]) -> Keyed:
    """The changes that mend the table; ``of_entries`` are the ranges of entries by sequence."""
    known = first(pipeline)

    def fold(good: DataFrame) -> DataFrame:
        slim = good.select("key_columns", "row", "_kafka")
        return first_of(with_sequence(slim, of_entries), "sequence")

    update = differs(pipeline.columns)
    return replace(known, fold=fold, update=update, updates=known.inserts, by_files=None)
