"""What both modes share: the batch a writer is given, and counting its records on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.protocol.entry import Entry, RowCounts, app_id
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import Address

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


class Quarantine(Protocol):
    """Where bad records go, ahead of the commit they belong to."""

    def write(self, bad: DataFrame, entry: Entry) -> None:
        """Append the bad rows of a decoded batch, tagged with the entry's commit id."""


@dataclass(frozen=True)
class Target:
    """The table a writer commits to: where it lies, and its columns, in order."""

    address: Address
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    marked: bool = False
    """Whether it has the column ``TOMBSTONE``: a row where that is true counts as absent."""


TOMBSTONE = "_tombstone"
"""The column of the mark, see ``write.replace``: BOOLEAN, true in a deleted row, else null."""


class Writer(Protocol):
    """One mode of writing."""

    def write(self, decoded: DataFrame, entry: Entry) -> Entry:
        """Commit the batch with the entry; return the entry as it was committed.

        The entry gains its ``rows`` where they are known before the commit. Raises what
        Spark raises: only the log, read back, tells what became of the write.
        """


def row_columns(target: Target) -> list[Column]:
    """The table's columns in a decoded batch, without ``_kafka``."""
    return [F.col("row").getField(name).alias(name) for name in target.columns]


def writer_options(entry: Entry) -> dict[str, str]:
    """What makes a DataFrame write a commit of ours: ``txn`` and entry in one."""
    return {
        "txnAppId": app_id(entry.pipeline),
        "txnVersion": str(entry.sequence),
        "userMetadata": entry.to_json(),
    }


def record(session: SparkSession, entry: Entry, address: Address) -> None:
    """Commit an entry that comes with no rows."""
    nothing = address.read(session).limit(0)
    address.write(nothing.write.mode("append").options(**writer_options(entry)))


@contextmanager
def session_confs(session: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    """Set ``confs`` on the batch's own session and unset them whatever happens.

    A pair that stays set would make the next write to the table a silent no-op.
    """
    try:
        for name, value in confs.items():
            session.conf.set(name, value)
        yield
    finally:
        for name in confs:
            session.conf.unset(name)


def merge_confs(entry: Entry) -> dict[str, str]:
    """What makes a MERGE a commit of ours; it takes no options."""
    return {
        TXN_APP_ID: app_id(entry.pipeline),
        TXN_VERSION: str(entry.sequence),
        USER_METADATA: entry.to_json(),
    }


def counters(ranges: Sequence[OffsetRange]) -> list[Column]:
    """Two aggregates per range, for ``observe``: applied ``a<i>`` and quarantined ``q<i>``."""
    code = F.col("code")
    columns: list[Column] = []
    for index, each in enumerate(ranges):
        partition = F.col("_kafka").getField("partition") == each.partition
        here = partition & (F.col("_kafka").getField("topic") == each.topic)
        columns.append(F.count_if(here & code.isNull()).alias(f"a{index}"))
        columns.append(F.count_if(here & code.isNotNull()).alias(f"q{index}"))
    return columns


def counted(entry: Entry, metrics: Mapping[str, int]) -> Entry:
    """The entry with the observed counts of each of its ranges."""
    rows = tuple(
        RowCounts(metrics[f"a{index}"], metrics[f"q{index}"]) for index in range(len(entry.ranges))
    )
    return replace(entry, rows=rows)
