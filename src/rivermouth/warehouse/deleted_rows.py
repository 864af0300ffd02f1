"""Which rows a DELETE took: the table before it, compared with the table after it."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.spark.errors import FAULTS, reason, said
from rivermouth.spark.tables import Address
from rivermouth.warehouse.tables import TOMBSTONE

# As Delta and Spark name it: a version, or a file of one, that clean-up or VACUUM has taken.
_GONE = re.compile(
    r"DELTA_FILE_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST|FileNotFoundException"
    r"|DELTA_VERSION_NOT_FOUND|DELTA_NO_RECREATABLE_HISTORY_FOUND|DELTA_CANNOT_TIME_TRAVEL"
    r"|DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION|there is no such object"
)


def deleted_rows(
    session: SparkSession, address: Address, version: int, most: int, shared: bool
) -> list[OffsetRange] | None:
    """The offsets of the rows that the commit at ``version`` took, as runs in order.

    ``shared``: one offset may be that of several rows, because a topic was created again, or
    because a record may have several; it is named if it lost any of them. Where it may not, rows of
    one offset are copies of one row, which is there as long as any of them is.
    None where nobody can tell: the files before it are gone, or there are more than ``most`` runs.
    Reads the coordinates of the whole table twice. Raises LogUnreadable.
    """
    try:
        before, after = (_places(address.at(session, each)) for each in (version - 1, version))
        gone = before.exceptAll(after).distinct() if shared else before.subtract(after)
        found = _runs(gone).limit(most + 1).collect()
    except LedgerBroken:  # the log no longer tells of the version before
        return None
    except FAULTS as fault:
        if _GONE.search(said(fault)):
            return None
        raise LogUnreadable(
            f"the rows of versions {version - 1} and {version} cannot be compared",
            where=str(address),
            found=reason(fault),
        ) from fault
    if len(found) > most:
        return None
    runs = (
        OffsetRange(TopicPartition(each["topic"], each["partition"]), each["first"], each["until"])
        for each in found
    )
    return sorted(runs)


def _places(rows: DataFrame) -> DataFrame:
    """The coordinates of the rows; one that is marked as deleted is none."""
    if TOMBSTONE in rows.columns:
        rows = rows.where(F.col(TOMBSTONE).isNull())
    known = rows.select("_kafka.topic", "_kafka.partition", "_kafka.offset")
    return known.dropna()


def _runs(places: DataFrame) -> DataFrame:
    """Consecutive offsets as one row: in a run, offset less number is the same."""
    by_partition = Window.partitionBy("topic", "partition").orderBy("offset")
    run = F.col("offset") - F.row_number().over(by_partition)
    grouped = places.withColumn("run", run).groupBy("topic", "partition", "run")
    return grouped.agg(F.min("offset").alias("first"), (F.max("offset") + 1).alias("until"))
