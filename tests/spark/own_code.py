"""Functions that a pipeline may name as its ``transform``, right ones and wrong ones."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth import Batch

SEEN: list[Batch] = []


def doubled(df: DataFrame, batch: Batch) -> DataFrame:
    SEEN.append(batch)
    return df.withColumn("twice", F.col("n") * 2).withColumnRenamed("n", "m")


def even(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).where("m % 2 = 0")


def none(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).where("false")


def limited(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).limit(1)


def unioned(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).unionAll(doubled(df, batch))


def joined(df: DataFrame, batch: Batch) -> DataFrame:
    names = df.sparkSession.range(100).selectExpr("id AS m", "id * 2 AS twice")
    return df.withColumnRenamed("n", "m").join(names, "m")


def exploded(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).withColumn("twice", F.explode(F.array("m", "twice")))


def joined_twice(df: DataFrame, batch: Batch) -> DataFrame:
    both = df.sparkSession.range(2).selectExpr("id AS twice")
    return df.withColumnRenamed("n", "m").crossJoin(both)


def repeated(df: DataFrame, batch: Batch) -> DataFrame:
    """A row for each number below ``n``: none of 1."""
    below = F.expr("if(m > 1, sequence(1, m - 1), array())")
    return doubled(df, batch).withColumn("twice", F.explode(below))


def repeated_elsewhere(df: DataFrame, batch: Batch) -> DataFrame:
    other = F.col("_kafka").withField("offset", F.col("_kafka.offset") + 1000)
    return repeated(df, batch).withColumn("_kafka", other)


def elsewhere(df: DataFrame, batch: Batch) -> DataFrame:
    other = F.col("_kafka").withField("offset", F.col("_kafka.offset") + 1000)
    return doubled(df, batch).withColumn("_kafka", other)


def counting(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).withColumn("twice", F.lit(df.count()))


def looking(df: DataFrame, batch: Batch) -> DataFrame:
    return df if df.isEmpty() else doubled(df, batch)


def broken(df: DataFrame, batch: Batch) -> DataFrame:
    raise ValueError("no rule for this day")


def misspelt(df: DataFrame, batch: Batch) -> DataFrame:
    return df.select("nn", "_kafka")


def nothing(df: DataFrame, batch: Batch) -> None:
    return None


def with_text(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).withColumn("twice", F.col("twice").cast("string"))


def without_kafka(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).drop("_kafka")


def failing_in_python(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).withColumn("m", F.udf(lambda n: [n, n, n, n][n], "bigint")("m"))


def dividing(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).withColumn("m", F.expr("bigint(12 / (m - 3))"))


def backwards(df: DataFrame, batch: Batch) -> DataFrame:
    return doubled(df, batch).orderBy(F.desc("m"))
