"""Keys whose row would not hold what a batch adds to it: their records become bad ones.

Asked only after a commit was refused, so that no other batch pays for it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.write.rows import Keyed, Rows

OVERFLOW = "RM606"


def without_overflow(decoded: DataFrame, table: DataFrame, rows: Rows) -> DataFrame:
    """The decoded rows; the good ones of a key that overflows have the code RM606.

    ``table`` is the table as it stands. All records of the key in the batch are bad then: to take
    some of them would make the total depend on where a batch ends.
    """
    if not isinstance(rows, Keyed) or rows.overflows is None:
        return decoded
    folded = rows.fold(decoded.where("code IS NULL"))
    changes = folded.select(F.struct(*folded.columns).alias("s"))
    there = table.select(F.struct(*table.columns).alias("t"))
    key = F.col("s").getField("key_columns")
    same = [F.col("t").getField(each) == key.getField(each) for each in rows.keys]
    joined = changes.join(there, same, "left").where(F.expr(rows.overflows))
    found = joined.select(key.alias("overflowing"))
    marked = decoded.join(found, F.col("key_columns") == F.col("overflowing"), "left")
    code = F.when(F.col("overflowing").isNotNull(), OVERFLOW)
    return marked.select(
        *(
            F.coalesce("code", code).alias(each) if each == "code" else each
            for each in decoded.columns
        )
    )
