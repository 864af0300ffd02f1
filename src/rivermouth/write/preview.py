"""What changes by key would do to a table, counted before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.write.rows import Keyed
from rivermouth.write.soft_delete import TOMBSTONE


@dataclass(frozen=True)
class RowChanges:
    """Rows that would be inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int

    @property
    def total(self) -> int:
        """Rows that would change."""
        return self.inserted + self.updated + self.deleted


def row_changes(changes: DataFrame, table: DataFrame, rows: Keyed) -> RowChanges:
    """What ``changes`` (see ``Keyed.fold``) would do to ``table`` as it is now."""
    there = table.where(F.col(TOMBSTONE).isNull()) if TOMBSTONE in table.columns else table
    old = there.select(F.struct(*there.columns).alias("t"))
    new = changes.select(F.struct(*changes.columns).alias("s"))
    key = F.col("s").getField("key_columns")
    same = [F.col("t").getField(each) == key.getField(each) for each in rows.keys]
    joined = new.join(old, same, "left")
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
    return RowChanges(**found.asDict())
