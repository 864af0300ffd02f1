"""Python workers of a session of ours are reached at files, and these go with the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_workers_meet_the_jvm_at_a_file_in_a_folder_that_is_only_ours(
    rivermouth_spark: SparkSession,
) -> None:
    settings = rivermouth_spark.sparkContext.getConf()
    assert settings.get("spark.python.unix.domain.socket.enabled") == "true"
    folder = Path(settings.get("spark.python.unix.domain.socket.dir") or "")
    assert folder.stat().st_mode & 0o777 == 0o700

    rows = rivermouth_spark.range(3).mapInArrow(same, "id BIGINT").collect()

    assert [row["id"] for row in rows] == [0, 1, 2]
    assert [*folder.glob(".*.sock")]
