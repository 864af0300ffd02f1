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
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition

RAW = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
ARRIVED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ORDERS = "order_id BIGINT, status STRING, rank INT"

RawRow = tuple[bytes | None, bytes | None, int, int]  # key, value, partition, offset


def a_pipeline(**target: Any) -> Pipeline:
    """An upsert of ``ORDERS`` by order_id and rank, tombstones by text key."""
    key: str | None = target.pop("key", "string")
    schema = target.pop("schema", ORDERS)
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json", "key": key},
            "columns": schema,
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

    def entry(self, sequence: int, rows: Iterable[RawRow], before: Position) -> Entry:
        """The entry that covers ``rows``, after ``before``."""
        ends: dict[int, int] = {}
        for _, _, partition, offset in rows:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        ranges = tuple(
            OffsetRange(place, before.get(place) or 0, end)
            for place, end in ((TopicPartition("t", p), end) for p, end in sorted(ends.items()))
        )
        return Entry(
            pipeline="p",
            sequence=sequence,
            commit=str(uuid.uuid4()),
            cluster="c",
            table="i",
            topics={"t": "id"},
            ranges=ranges,
            position=before.advance(ranges),
        )


@pytest.fixture
def bench(rivermouth_spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(rivermouth_spark, tmp_path)
