"""A session of ours, and one beside it, on a real Spark."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rivermouth.spark.session import separate

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ZONE, TXN = "spark.sql.session.timeZone", "spark.databricks.delta.write.txnVersion"


@pytest.fixture
def session(rivermouth_spark: SparkSession) -> Iterator[SparkSession]:
    """The common session in another zone, for one test."""
    before = rivermouth_spark.conf.get(ZONE) or ""
    rivermouth_spark.conf.set(ZONE, "Asia/Kathmandu")
    yield rivermouth_spark
    rivermouth_spark.conf.set(ZONE, before)


def test_it_has_the_settings_that_the_other_one_has_now(session: SparkSession) -> None:
    assert separate(session).conf.get(ZONE) == "Asia/Kathmandu"
    other = {**session.conf.getAll}
    assert separate(session).conf.getAll == other


def test_it_has_those_of_a_store_that_spark_does_not_know(session: SparkSession) -> None:
    session.conf.set("fs.s3a.endpoint", "http://localhost:9000")
    try:
        assert separate(session).conf.get("fs.s3a.endpoint", None) == "http://localhost:9000"
    finally:
        session.conf.unset("fs.s3a.endpoint")


def test_neither_sees_what_the_other_one_gets_later(session: SparkSession) -> None:
    own = separate(session)
    own.conf.set(TXN, "7")
    session.conf.set(ZONE, "UTC")
    own.range(1).createOrReplaceTempView("of_one_batch")
    assert session.conf.get(TXN, None) is None
    assert own.conf.get(ZONE) == "Asia/Kathmandu"
    assert not session.catalog.tableExists("of_one_batch")


def test_the_classes_of_many_plans_are_kept(rivermouth_spark: SparkSession) -> None:
    """By default 100: a batch by key needs about as many, and would compile them anew each time."""
    assert int(rivermouth_spark.conf.get("spark.sql.codegen.cache.maxEntries") or 0) >= 1_000


def test_temporary_files_of_the_jvm_and_of_its_workers_go_with_the_folder_of_the_session(
    rivermouth_spark: SparkSession,
) -> None:
    context = rivermouth_spark.sparkContext
    folder = context.getConf().get("spark.local.dir")
    jvm = context._jvm
    assert jvm is not None
    assert jvm.System.getProperty("java.io.tmpdir") == folder
    assert context.parallelize([1], 1).map(lambda _: tempfile.gettempdir()).first() == folder


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


def test_the_python_of_one_session_is_no_word_of_the_user_to_the_next(
    rivermouth_spark: SparkSession,
) -> None:
    assert rivermouth_spark.sparkContext.pythonExec == sys.executable
    assert os.environ.get("PYSPARK_PYTHON") != sys.executable
