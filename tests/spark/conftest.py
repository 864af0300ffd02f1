"""Raw Kafka rows without a broker, and tables to write them to."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.protocol.commits import CommitPlan, Purpose
from rivermouth.protocol.entry import Draft
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address
from rivermouth.storage.store import Store
from rivermouth.warehouse.quarantine import QuarantineTable
from rivermouth.write.landing import Site

RAW = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
ARRIVED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ORDERS = "order_id BIGINT, status STRING, rank INT"

SESSION_SETTINGS = (
    ("spark.sql.session.timeZone", "Asia/Kolkata"),
    ("spark.sql.execution.arrow.useLargeVarTypes", "true"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "1"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "0"),
)
"""What a session may be set to, and what decodes or writes in Arrow might heed."""

RawRow = tuple[bytes | None, bytes | None, int, int]  # key, value, partition, offset


def a_pipeline(**target: Any) -> Pipeline:
    """An upsert of ``ORDERS`` by order_id and rank, tombstones by text key."""
    key: str | None = target.pop("key", "string")
    schema = target.pop("schema", ORDERS)
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json", "key": key},
            "ddl": schema,
            "target": {
                "table": "silver.orders",
                "mode": "upsert",
                "keys": ("order_id",),
                "order_by": ("rank",),
                **target,
            },
        }
    )


@dataclass(frozen=True)
class Bench:
    """A session and a folder for tables."""

    spark: SparkSession
    folder: Path

    def raw(self, rows: Iterable[RawRow]) -> DataFrame:
        """Kafka rows of topic ``t``, as the source gives them."""
        filled = [(key, value, "t", part, offset, ARRIVED) for key, value, part, offset in rows]
        return self.spark.createDataFrame(filled, RAW)

    def plan(self, sequence: int, rows: Iterable[RawRow], before: Position) -> CommitPlan:
        """The plan of a commit that covers ``rows``, after ``before``."""
        ends: dict[int, int] = {}
        for _, _, partition, offset in rows:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        ranges = tuple(
            OffsetRange(place, before.get(place) or 0, end)
            for place, end in ((TopicPartition("t", p), end) for p, end in sorted(ends.items()))
        )
        draft = Draft(
            pipeline="p",
            sequence=sequence,
            cluster="c",
            table="i",
            topics={"t": "id"},
            ranges=ranges,
            position=before.advance(ranges),
        )
        return CommitPlan(Purpose.BATCH, draft, str(uuid.uuid4()), base=None)

    def site(self, pipeline: Pipeline, table: str) -> Site:
        """What a landing works with, for the table of that name in the folder."""
        return Site(
            spark=Spark.of(self.spark),
            pipeline=pipeline,
            address=self.address(table),
            make=lambda: resolve(pipeline.shape.changes)(pipeline),
            quarantine=QuarantineTable(
                self.address(f"{table}_quarantine"), pipeline.format.all_reasons
            ),
            one_host=True,
            jvm=True,
            staging=lambda: self.folder / "stage",
            store=Store.of_folder(self.folder / table),
            bad=Store.of_folder(self.folder / f"{table}_quarantine"),
        )

    def address(self, table: str) -> Address:
        """Where a table lies in the folder."""
        return Address(path=str(self.folder / table))


@pytest.fixture
def bench(rivermouth_spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(rivermouth_spark, tmp_path)
