"""Whether this engine replaces by key as ``write.replace`` needs it: asked of a table of two rows.

An engine that does not know ``replaceUsing`` passes over the option and overwrites the whole
table. No version number tells: those of Databricks' serverless compute say nothing of it, and a
Spark Connect server may be anybody's. So it is tried, once for each engine, and noted in the
target's properties.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from pyspark.sql import SparkSession

from rivermouth.errors import UpsertUnsupported
from rivermouth.spark.address import Address, literal, set_table_property, table_property

PROVEN = "rivermouth.replaces"
"""The target's property: the engine that was found to replace by key."""
_EXPECTED = "row 1 replaced once, row 2 kept, the commit's metadata recorded"


def check_replace(session: SparkSession, target: Address) -> None:
    """Raise UpsertUnsupported where an upsert would lose rows or its ledger entry.

    ``target`` is a table in a catalog; the table that is tried lies beside it, for a moment.
    """
    engine = str(session.sql("SELECT version()").collect()[0][0])
    if table_property(session, target, PROVEN) == engine:
        return
    *schema, name = target.name
    beside = replace(target, name=(*schema, f"{name}_probe_{uuid.uuid4().hex[:8]}"))
    found = _tried(session, beside)
    if found != _EXPECTED:
        raise UpsertUnsupported(
            "this engine does not replace rows by key as an upsert needs it",
            where=str(target),
            expected=_EXPECTED,
            found=f"{found}, by Spark {engine}",
        )
    set_table_property(session, target, PROVEN, engine)


def _tried(session: SparkSession, probe: Address) -> str:
    """What became of two rows: ``_EXPECTED``, or what else."""
    two = "VALUES (1, 'old'), (2, 'old') AS t(k, v)"
    session.sql(f"CREATE TABLE {probe.sql} USING delta AS SELECT * FROM {two}")
    options = {"replaceUsing": "k", "txnAppId": probe.name[-1], "txnVersion": "1"}
    try:
        for value in ("new", "again"):  # the second is a retry of the first
            row = session.sql(f"SELECT 1 AS k, {literal(value)} AS v")
            probe.write(row.write.mode("overwrite").options(**options, userMetadata=value))
        rows = sorted((each["k"], each["v"]) for each in probe.read(session).collect())
        newest = session.sql(f"DESCRIBE HISTORY {probe.sql} LIMIT 1").collect()[0]
        noted = newest["userMetadata"]
    finally:
        session.sql(f"DROP TABLE IF EXISTS {probe.sql}")
    kept = rows == [(1, "new"), (2, "old")] and noted == "new"
    return _EXPECTED if kept else f"rows {rows}, metadata {noted}"
