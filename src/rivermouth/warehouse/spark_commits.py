"""How a write carries ``txn`` and ledger entry: by options, or by session confs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rivermouth.protocol.commits import CommitPlan, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def writer_options(entry: Entry) -> dict[str, str]:
    """What makes a DataFrame write a commit of ours: ``txn`` and entry in one."""
    return {
        "txnAppId": app_id(entry.pipeline),
        "txnVersion": str(entry.sequence),
        "userMetadata": to_json(entry),
    }


def statement_confs(entry: Entry) -> dict[str, str]:
    """What makes a MERGE or an INSERT a commit of ours; a statement takes no options."""
    return {
        TXN_APP_ID: app_id(entry.pipeline),
        TXN_VERSION: str(entry.sequence),
        USER_METADATA: to_json(entry),
    }


def record(spark: Spark, address: Address, plan: CommitPlan) -> None:
    """Make a commit that brings no rows."""
    record_entry(spark.session(), plan.empty_entry(), address)


def record_entry(session: SparkSession, entry: Entry, address: Address) -> None:
    """Make a commit of an entry alone."""
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
