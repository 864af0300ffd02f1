"""Tables that the driver creates by itself are those that Spark would create."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import Column, Pipeline
from rivermouth.config.columns import SIMPLE
from rivermouth.errors import TableLocked
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import in_sql, of_lines, schema_of
from rivermouth.warehouse.delta.log import path_of
from rivermouth.warehouse.lake import warehouse
from rivermouth.warehouse.lake.warehouse import table_lock
from rivermouth.warehouse.tables import (
    check_target,
    columns_of,
    create_by_commit,
    create_target,
    why_by_spark,
)
from tests.spark.conftest import a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NESTED = "STRUCT<a: ARRAY<DECIMAL(12,2)>, `b`: MAP<STRING, STRUCT<d: TINYINT>>>"


def of_every_type(**settings: Any) -> Pipeline:
    kinds = [each for each in SIMPLE if each != "TIMESTAMP_NTZ"]
    columns = [Column(f"of_{each.lower()}", each) for each in kinds]
    more = (*columns, Column("nested", NESTED))
    return a_pipeline(**settings).model_copy(update={"ddl": more})


def said(path: Path) -> dict[str, Any]:
    """What the first commit says of the table, without what differs from table to table."""
    actions = of_lines((path / path_of(0)).read_bytes())
    found = {kind: dict(each) for action in actions for kind, each in action.items()}
    for name in ("id", "createdTime"):
        del found["metaData"][name]
    info = found.pop("commitInfo")
    parameters = {k: v for k, v in info["operationParameters"].items() if v is not None}
    parameters["properties"] = json.loads(parameters["properties"])
    for name in ("readerFeatures", "writerFeatures"):
        found["protocol"][name] = {*found["protocol"].get(name, ())}
    return {**found, "operation": (info["operation"], parameters)}


def with_properties(**properties: str) -> Pipeline:
    plain = of_every_type()
    named = {name.replace("_", "."): value for name, value in properties.items()}
    target = plain.target.model_copy(update={"properties": named})
    return plain.model_copy(update={"target": target})


def without_zone() -> Pipeline:
    columns = (Column("id", "BIGINT"), Column("at", "ARRAY<TIMESTAMP_NTZ>"))
    return of_every_type().model_copy(update={"ddl": columns})


MADE: dict[str, Callable[[], Pipeline]] = {
    "every type": of_every_type,
    "append only": lambda: with_properties(delta_appendOnly="true", my_own="1"),
    "change data feed": lambda: with_properties(delta_enableChangeDataFeed="true"),
    "no vectors": lambda: with_properties(delta_enableDeletionVectors="false"),
    "without a zone": without_zone,
}


@pytest.mark.parametrize("kind", MADE)
def test_a_table_of_the_driver_says_what_one_of_spark_says(
    rivermouth_spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    pipeline = MADE[kind]()
    assert why_by_spark(pipeline, []) == ""
    ours, theirs = tmp_path / "of" / "the" / "driver", tmp_path / "of" / "spark"
    create_target(rivermouth_spark, pipeline, Address(path=str(theirs)))
    create_by_commit(pipeline, Store.of_folder(ours))
    assert said(ours) == said(theirs)

    before = (ours / path_of(0)).read_bytes()
    create_by_commit(pipeline, Store.of_folder(ours))  # somebody else is as fast
    assert (ours / path_of(0)).read_bytes() == before
    check_target(rivermouth_spark, pipeline, Address(path=str(ours)))


def test_types_are_told_as_spark_tells_them(rivermouth_spark: SparkSession) -> None:
    columns = [*columns_of(of_every_type()), ("without_zone", "TIMESTAMP_NTZ")]
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns)
    spark = rivermouth_spark.createDataFrame([], ddl).schema
    assert schema_of(columns) == json.loads(spark.json())
    kinds = {each["name"]: in_sql(each["type"]) for each in schema_of(columns)["fields"]}
    assert kinds == {each.name: each.dataType.simpleString() for each in spark}


def test_spark_creates_what_asks_for_more_than_is_known() -> None:
    plain = of_every_type()
    default = "spark.databricks.delta.properties.defaults.appendOnly"
    assert why_by_spark(plain, ["spark.driver.memory"]) == ""
    assert why_by_spark(plain, [default])
    assert why_by_spark(with_properties(delta_enableRowTracking="true"), [])
    assert why_by_spark(with_properties(delta_checkpointInterval="often"), [])


def _ask(file: Path, answers: Any) -> None:
    """Ask for the lock, as another process."""
    warehouse.PATIENCE_S = 0.0
    try:
        with table_lock(Spark(lambda: pytest.fail("no Spark here")), file):
            answers.put("ours")
    except TableLocked:
        answers.put("locked")


def asked_by_another(file: Path) -> Any:
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    process = processes.Process(target=_ask, args=(file, answers))
    process.start()
    found = answers.get(timeout=60)
    process.join(60)
    return found


def test_a_lock_is_held_by_this_process_and_by_its_jvm_once_there_is_one(
    rivermouth_spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "locks" / "bronze.t.lock"
    spark = Spark(lambda: rivermouth_spark)
    with table_lock(spark, file), table_lock(spark, file):
        assert asked_by_another(file) == "locked"
        spark.session()
        assert asked_by_another(file) == "locked"
        # What the system does where this process is killed and its JVM lives on.
        [lock] = warehouse._LOCKS.values()
        fcntl.lockf(lock._descriptor, fcntl.LOCK_UN)
        assert asked_by_another(file) == "locked"
    assert asked_by_another(file) == "ours"
