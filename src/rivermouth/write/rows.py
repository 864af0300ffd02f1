"""What a shape gives to a landing: rows to add, one change per key, or rows to send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Delivery, Pipeline
from rivermouth.warehouse.tables import TOMBSTONE
from rivermouth.write.keys.effect import ByFiles
from rivermouth.write.transform import Transform, transform_of

RECORDS = "records"
"""The column of a fold that counts the rows of a key."""


@dataclass(frozen=True)
class Plain:
    """Each good record becomes one row.

    ``columns`` are those of the table without ``_kafka``, over a decoded batch (``formats``).
    They are built once per pipeline: each is many calls into the JVM. ``transform`` makes of them
    what the table gets; None: they are it.
    """

    columns: Sequence[Column]
    transform: Transform | None = None


@dataclass(frozen=True)
class Keyed:
    """The good records of a batch become one change per key.

    ``fold`` makes of good decoded rows a DataFrame with one row per key: ``key_columns``, a
    struct of the ``keys``, ``records``, the number of rows with that key, and whatever the
    expressions below ask for. These are SQL over ``s``, a row of the fold, and ``t``, the row of
    the table with that key. In this order: where ``delete`` holds, the row goes; where ``update``
    holds, ``updates`` give its columns; where no row has the key and ``insert`` holds, ``inserts``
    give the new one. A shape that never deletes or never updates leaves ``delete`` or ``update`` at
    None. Where ``overflows`` holds, a value of the row would not fit into its column; ``updates``
    and ``inserts`` fail there by ``formats.arrow.REFUSAL``, and the records of the key are bad.
    ``reads`` are the columns of ``row`` that ``fold`` reads, beside the key; None: all.
    ``ordered``: it reads the whole ``_kafka``; else no more than topic and partition.
    ``by_files``: how they land as files; None: they do not.
    """

    keys: tuple[str, ...]
    fold: Callable[[DataFrame], DataFrame]
    inserts: Mapping[str, str]
    insert: str = "true"
    update: str | None = None
    updates: Mapping[str, str] = field(default_factory=dict)
    delete: str | None = None
    overflows: str | None = None
    reads: frozenset[str] | None = None
    ordered: bool = True
    by_files: ByFiles | None = None


@dataclass(frozen=True)
class Sent:
    """Each good record is sent to a sink, and the table gets no row.

    ``first``: it is sent before the commit of its batch, else after it. ``transform`` makes of the
    records what is sent; None: they are it.
    """

    first: bool
    transform: Transform | None = None


Rows = Plain | Keyed | Sent


OVERFLOW = "RM606"


def with_old_rows(changes: DataFrame, table: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Each change ``s`` (``Keyed.fold``) with the row ``t`` of its key, null if there is none."""
    new = changes.select(F.struct(*changes.columns).alias("s"))
    old = table.select(F.struct(*table.columns).alias("t"))
    return new.join(old, same_key("t", keys), "left")


def same_key(row: str, keys: Sequence[str]) -> list[Column]:
    """Whether the change ``s`` has the key of the struct in the column ``row``."""
    key = F.col("s").getField("key_columns")
    return [F.col(row).getField(each) == key.getField(each) for each in keys]


def without_overflow(decoded: DataFrame, table: DataFrame, rows: Rows) -> DataFrame:
    """The decoded rows; the good ones of a key that overflows have the code RM606.

    ``table`` is the table as it stands. All records of the key in the batch are bad then: to take
    some of them would make the total depend on where a batch ends.
    """
    if not isinstance(rows, Keyed) or rows.overflows is None:
        return decoded
    changes = rows.fold(decoded.where("code IS NULL"))
    joined = with_old_rows(changes, table, rows.keys).where(F.expr(rows.overflows))
    found = joined.select(F.col("s").getField("key_columns").alias("overflowing"))
    marked = decoded.join(found, F.col("key_columns") == F.col("overflowing"), "left")
    code = F.when(F.col("overflowing").isNotNull(), OVERFLOW)
    return marked.select(
        *(
            F.coalesce("code", code).alias(each) if each == "code" else each
            for each in decoded.columns
        )
    )


def row_changes(changes: DataFrame, table: DataFrame, rows: Keyed) -> dict[str, int]:
    """How many rows of ``table``, as it is now, would be ``inserted``, ``updated`` and ``deleted``
    by ``changes`` (see ``Keyed.fold``).
    """
    there = table.where(F.col(TOMBSTONE).isNull()) if TOMBSTONE in table.columns else table
    joined = with_old_rows(changes, there, rows.keys)
    absent = F.col("t").isNull()
    deletes = ~absent & F.coalesce(F.expr(rows.delete or "false"), F.lit(False))
    counted = {
        "inserted": absent & F.expr(rows.insert),
        "updated": ~absent & ~deletes & F.expr(rows.update or "false"),
        "deleted": deletes,
    }
    [found] = joined.agg(
        *(F.count_if(each).alias(name) for name, each in counted.items())
    ).collect()
    return found.asDict()


def append(pipeline: Pipeline) -> Plain:
    """The configured columns, as they were decoded, and the code that makes others of them."""
    row = F.col("row")
    columns = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
    return Plain(columns, transform_of(pipeline))


def send(pipeline: Pipeline) -> Sent:
    """The records, or what own code makes of them, before the commit or after it."""
    first = pipeline.delivery is Delivery.AT_LEAST_ONCE
    return Sent(first, transform_of(pipeline))
