"""Peers of the benchmarks that Spark makes: Delta's streaming sink, and foreachBatch by hand.

An order with ``trigger_ms`` is a continuous query, which ends when it has read ``messages``
records; any other reads up to the end of the topic.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bids import DDL, bid
from peer import cpu_seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rivermouth.source.batches import READER_DEFAULTS, reader_options

_POLL_S = 1


def tuned(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Read the topic with the native Delta sink and our reader settings."""
    return _native(session, order, table, READER_DEFAULTS)


def stock(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Read the topic with the native Delta sink and Spark's own reader settings."""
    return _native(session, order, table, {})


def _native(
    session: SparkSession, order: Mapping[str, Any], table: Path, reader: Mapping[str, str]
) -> dict[str, float]:
    rows = _typed(session, order, reader)
    return _read(rows.writeStream.format("delta").option("path", str(table)), order, table)


def foreach_batch(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Read the topic with an append in foreachBatch and our reader settings."""
    rows = _typed(session, order, READER_DEFAULTS)
    return _read(rows.writeStream.foreachBatch(partial(_append, table)), order, table)


def bare(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Read the topic and let Spark drop the rows; ``batches`` and ``cpus`` are the time of each.

    The reader has our settings. ``partitions`` is how many the topic has, and ``parts`` in how many
    a batch is read (0: as the source gives them); ``options`` are further ones of the source.
    """
    options = {**reader_options({}, order["partitions"]), **order.get("options", {})}
    ends, used = [time.monotonic()], [cpu_seconds(os.getpid())]

    def drop(batch: DataFrame, number: int) -> None:
        rows = batch.coalesce(order["parts"]) if order["parts"] else batch
        rows.write.format("noop").mode("overwrite").save()
        ends.append(time.monotonic())
        used.append(cpu_seconds(os.getpid()))

    writer = _kafka(session, order, options).writeStream.foreachBatch(drop)
    found = _read(writer, order, table)
    batches, cpus = ([end - begin for begin, end in pairwise(each)] for each in (ends, used))
    return {**found, "batches": batches, "cpus": cpus}


def by_hand(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Keep totals of the topic by a MERGE in foreachBatch, with our reader settings.

    It skips a batch that is repeated, by Delta's ``txnAppId`` and ``txnVersion``.
    """
    columns = "auction BIGINT, n BIGINT, spent BIGINT, last TIMESTAMP"
    session.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    rows = _typed(session, order, READER_DEFAULTS)
    return _read(rows.writeStream.foreachBatch(partial(_merge, table)), order, table)


def merge_by_hand(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Keep the newest row of each key by a MERGE in foreachBatch; ``batches`` is the time of each.

    A key has one partition of Kafka: so its last record counts. It skips a batch that is repeated.
    """
    rows, ends = _typed(session, order, READER_DEFAULTS), [time.monotonic()]

    def merge(batch: DataFrame, number: int) -> None:
        _merge_rows(table, batch, number)
        ends.append(time.monotonic())

    found = _read(rows.writeStream.foreachBatch(merge), order, table)
    return {**found, "batches": [end - begin for begin, end in pairwise(ends)]}


def one_row(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Append one row with the columns of a bid, so many times; ``batches`` is the time of each."""
    kafka = {"topic": "'bids'", "partition": "0", "offset": "0L", "timestamp": "now()"}
    named = ", ".join(f"{value} AS {name}" for name, value in kafka.items())
    rows = session.range(0, 1, 1, 1).select(
        F.from_json(F.lit(bid(0, random.Random(7)).decode()), DDL).alias("row"),
        F.expr(f"struct({named})").alias("_kafka"),
    )
    rows, batches = rows.select("row.*", "_kafka"), []
    for number in range(order["messages"]):
        began = time.monotonic()
        _append(table, rows, number)
        batches.append(time.monotonic() - began)
    return {"batches": batches}


def _append(table: Path, batch: DataFrame, number: int) -> None:
    txn = {"txnAppId": "by_hand", "txnVersion": str(number)}
    batch.write.format("delta").mode("append").options(**txn).save(str(table))


_SAME = "MERGE INTO delta.`{}` t USING batch s ON t.auction = s.auction"
_ADD = "t.n = t.n + s.n, t.spent = t.spent + s.spent, t.last = greatest(t.last, s.last)"


def _merge(table: Path, batch: DataFrame, number: int) -> None:
    session = batch.sparkSession
    totals = F.count("*").alias("n"), F.sum("price").alias("spent"), F.max("at").alias("last")
    batch.groupBy("auction").agg(*totals).createOrReplaceTempView("batch")
    session.conf.set("spark.databricks.delta.write.txnAppId", "by_hand")
    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    session.sql(
        f"{_SAME.format(table)} WHEN MATCHED THEN UPDATE SET {_ADD} WHEN NOT MATCHED THEN INSERT *"
    )


def _merge_rows(table: Path, batch: DataFrame, number: int) -> None:
    session = batch.sparkSession
    newest = F.expr("max_by(struct(*), _kafka.offset)").alias("row")
    changes = batch.groupBy("auction").agg(newest).select("row.*")
    changes.hint("broadcast").createOrReplaceTempView("batch")
    session.conf.set("spark.databricks.delta.write.txnAppId", "by_hand")
    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    session.sql(
        f"{_SAME.format(table)} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _typed(session: SparkSession, order: Mapping[str, Any], reader: Mapping[str, str]) -> DataFrame:
    """The bids of the topic with the columns of their values, and ``_kafka``."""
    source = _kafka(session, order, reader)
    return source.select(
        F.from_json(F.col("value").cast("string"), DDL).alias("row"),
        F.struct("topic", "partition", "offset", "timestamp").alias("_kafka"),
    ).select("row.*", "_kafka")


def _kafka(session: SparkSession, order: Mapping[str, Any], reader: Mapping[str, str]) -> DataFrame:
    """Kafka's rows of the topic, from its beginning."""
    return (
        session.readStream.format("kafka")
        .options(**reader)
        .option("kafka.bootstrap.servers", order["servers"])
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", order["topic"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", order["per_batch"])
        .load()
    )


def _read(writer: DataStreamWriter, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Run the query; return the time from its start to its end."""
    writer = writer.option("checkpointLocation", (table.parent / "checkpoint").as_uri())
    began = time.monotonic()
    if "trigger_ms" not in order:
        writer.trigger(availableNow=True).start().awaitTermination()
    else:
        query = writer.trigger(processingTime=f"{order['trigger_ms']} milliseconds").start()
        while _offsets(query) < order["messages"]:
            if query.awaitTermination(_POLL_S) or time.monotonic() - began > order["limit_s"]:
                raise SystemExit(f"the query has not read {order['messages']} records")
        query.stop()
    return {"seconds": time.monotonic() - began, "startup": 0.0}


def _offsets(query: StreamingQuery) -> int:
    """How many offsets the query has committed, from the beginning of its one topic."""
    progress = query.lastProgress
    end = None if progress is None else progress["sources"][0]["endOffset"]
    if isinstance(end, str):
        end = json.loads(end)
    return sum(sum(each.values()) for each in end.values()) if end else 0
