"""One peer of the benchmarks, in its own process with its own warm JVM.

It reads one JSON order per line on standard input and answers with one line of JSON. The roles are
``ours`` (the product, as in `rivermouth run --once`), ``tuned`` (the native Delta sink with our
session and reader settings), ``stock`` (that sink with Spark's defaults) and ``by_hand`` (totals by
a MERGE in foreachBatch, with our session and reader settings).
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bids import COLUMNS
from peer import peak_mb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.config import load
from rivermouth.local.heap import heap_settings
from rivermouth.local.machine import memory_mb
from rivermouth.local.session import start_session
from rivermouth.run.report import (
    CommitReport,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
)
from rivermouth.run.run import Run
from rivermouth.source.options import READER_DEFAULTS

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
_STOCK = {"spark.driver.memory": "2g", "spark.ui.enabled": "true"}


class _Clock:
    """Records when the pipeline opened and when it committed batches after that."""

    def __init__(self) -> None:
        self.began = 0.0
        self.commits: list[float] = []
        self.error: str | None = None

    @property
    def ended(self) -> float:
        return self.commits[-1] if self.commits else self.began

    def opened(self, report: OpenReport) -> None:
        self.began = time.monotonic()
        self.commits.clear()  # of newly discovered partitions

    def committed(self, report: CommitReport) -> None:
        self.commits.append(time.monotonic())

    def tries_again(self, report: RetryReport) -> None: ...

    def not_mirrored(self, report: MirrorReport) -> None: ...

    def finished(self, report: PipelineReport) -> None:
        self.error = str(report.error) if report.error else None


def ours(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Drain the topic with the product; return the time from open to the last commit.

    ``startup`` is the time until the pipeline was open, ``batches`` is that of each commit, and
    ``mb`` the most memory that this process has had, without its JVM.
    """
    folder = table.parent.parent
    file = folder / "rivermouth.yml"
    file.write_text(
        json.dumps(
            {
                "version": 1,
                "kafka": {"bootstrap.servers": order["servers"]},
                "warehouse": str(folder),
                "pipelines": {
                    "bids": {
                        "source": {
                            "topics": [order["topic"]],
                            "format": "json",
                            "max_offsets_per_trigger": order["per_batch"],
                        },
                        "schema": DDL,
                        "target": {
                            "table": f"{table.parent.name}.{table.name}",
                            **order.get("target", {}),
                        },
                    }
                },
            }
        ),
        encoding="utf-8",
    )
    clock = _Clock()
    asked = time.monotonic()
    run = Run(load(file), session, folder / "scratch", continuous=False)
    run.pipelines(["bids"], clock, threading.Event())
    if clock.error:
        raise SystemExit(clock.error)
    return {
        "seconds": clock.ended - clock.began,
        "startup": clock.began - asked,
        "batches": [end - start for start, end in pairwise([clock.began, *clock.commits])],
        "mb": peak_mb(),
    }


def native(
    session: SparkSession, order: Mapping[str, Any], table: Path, reader: Mapping[str, str]
) -> dict[str, float]:
    """Drain the topic with the native Delta sink; return the time from start to its end."""
    typed = _typed(session, order, reader)
    began = time.monotonic()
    query = (
        typed.writeStream.format("delta")
        .option("checkpointLocation", (table.parent / "checkpoint").as_uri())
        .trigger(availableNow=True)
        .start(str(table))
    )
    query.awaitTermination()
    return {"seconds": time.monotonic() - began, "startup": 0.0}


def by_hand(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, float]:
    """Keep totals of the topic by a MERGE in foreachBatch; return the time from start to its end.

    It skips a batch that is repeated, by Delta's ``txnAppId`` and ``txnVersion``.
    """
    columns = "auction BIGINT, n BIGINT, spent BIGINT, last TIMESTAMP"
    session.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    began = time.monotonic()
    query = (
        _typed(session, order, READER_DEFAULTS)
        .writeStream.foreachBatch(partial(_merge, table))
        .option("checkpointLocation", (table.parent / "checkpoint").as_uri())
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {"seconds": time.monotonic() - began, "startup": 0.0}


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


def _typed(session: SparkSession, order: Mapping[str, Any], reader: Mapping[str, str]) -> DataFrame:
    """The bids of the topic with the columns of their values, and ``_kafka``."""
    source = (
        session.readStream.format("kafka")
        .options(**reader)
        .option("kafka.bootstrap.servers", order["servers"])
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", order["topic"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", order["per_batch"])
        .load()
    )
    return source.select(
        F.from_json(F.col("value").cast("string"), DDL).alias("row"),
        F.struct("topic", "partition", "offset", "timestamp").alias("_kafka"),
    ).select("row.*", "_kafka")


def main(role: str, partitions: int) -> None:
    """Answer orders until standard input ends."""
    scratch = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    session = start_session(
        scratch,
        _STOCK if role == "stock" else heap_settings([partitions], memory_mb()),
        tuned=role != "stock",
        **({"java_options": ""} if role == "stock" else {}),
    )
    for line in sys.stdin:
        order = json.loads(line)
        table = Path(order["table"])
        table.parent.mkdir(parents=True, exist_ok=True)
        if role == "ours":
            answer = ours(session, order, table)
        elif role == "by_hand":
            answer = by_hand(session, order, table)
        else:
            answer = native(session, order, table, READER_DEFAULTS if role == "tuned" else {})
        print(json.dumps(answer), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
