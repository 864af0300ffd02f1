"""Which way the rows of a pipeline take, for who only looks: from configuration and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermouth.config import Config, unresolved
from rivermouth.operate.doctor import check_config
from rivermouth.operate.facts import way_now
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.protocol.offsets import Position
from rivermouth.protocol.ways import AS_FILES, Way
from rivermouth.run.report import OpenReport
from rivermouth.run.tables import status_table as render
from rivermouth.storage.lake import Lake
from tests.unit.operate.doubles import configured

pytestmark = pytest.mark.unit

FLOATS = pa.schema([("id", pa.int64()), ("x", pa.float64())])
SCHEMA = pa.schema([("id", pa.int64())])


def reason(config: Config) -> str | None:
    way = way_now(config.pipelines["p"], Lake.if_any(config))
    return None if way is None else way.reason


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ""),
        ({"target": {"commit": "auto"}}, ""),
        ({"target": {"commit": "spark"}}, "target.commit says so"),
        ({"select": "id", "target": {"schema": "id BIGINT"}}, ""),
        ({"target": {"mode": "upsert", "keys": ["id"]}}, ""),
        ({"target": {"table": None, "kafka": "out"}}, ""),
        ({"select": "id", "target": {"table": None, "kafka": "out", "schema": "id BIGINT"}}, ""),
        ({"target": {"table": None, "kafka": "out", "commit": "spark"}}, "target.commit says so"),
    ],
)
def test_what_the_configuration_says(
    tmp_path: Path, settings: dict[str, Any], expected: str | None
) -> None:
    assert reason(configured(tmp_path, p=settings)) == expected


def test_where_threads_of_python_have_none_in_the_jvm_spark_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "False")
    assert reason(configured(tmp_path, p={})) == "PYSPARK_PIN_THREAD is false"
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "True")
    assert reason(configured(tmp_path, p={})) == ""


def test_several_pipelines_may_land_rows_in_one_table_as_files(tmp_path: Path) -> None:
    shared = configured(tmp_path, **{name: {"target": {"table": "s.p"}} for name in "pqr"})
    assert reason(shared) == ""


def test_tables_in_a_catalog_land_through_spark(tmp_path: Path) -> None:
    catalog = configured(tmp_path, warehouse={"catalog": "main"}, p={})
    assert reason(catalog) == "the table is not in a folder of this machine"


def test_what_the_tables_say(tmp_path: Path) -> None:
    config = configured(tmp_path, p={})
    table, bad = (str(tmp_path / "lake" / "s" / each) for each in ("p", "p_quarantine"))
    DeltaTable.create(table, SCHEMA)
    assert reason(config) == ""
    DeltaTable.create(bad, SCHEMA, configuration={"delta.randomizeFilePrefixes": "true"})
    why = "of the quarantine, the table has the property delta.randomizeFilePrefixes = true"
    assert reason(config) == why
    DeltaTable.create(table, FLOATS, partition_by=["x"], mode="overwrite")
    assert reason(config) == "the table is partitioned by x, which is of the type double"


def test_status_run_and_doctor_say_it(tmp_path: Path) -> None:
    spark = Way("target.commit says so")
    line = "rows land through Spark: target.commit says so"
    found = PipelineStatus("p", State.NEW, "s.t", way=spark)
    assert render(Status([found])).endswith(f"p: {line}")
    assert found.as_dict()["landing"] == {"by": "spark", "reason": "target.commit says so"}
    files = PipelineStatus("p", State.NEW, "s.t", way=AS_FILES)
    assert "rows land" not in render(Status([files]))
    assert files.as_dict()["landing"] == {"by": "files", "reason": None}
    assert OpenReport("p", 0, Position(), 0, 0, landing=line).line().endswith(f"; {line}")

    assert said_by_doctor(tmp_path, commit="spark") == f"format json, mode append, {line}"


@pytest.mark.thorough
def test_the_ledger_of_a_pipeline_that_sends_is_told_of_only_where_spark_commits(
    tmp_path: Path,
) -> None:
    sink = {"table": None, "kafka": "out"}
    sent = "format json, records are sent to out, at-least-once"
    assert said_by_doctor(tmp_path, **sink) == sent
    line = "entries are committed through Spark: target.commit says so"
    assert said_by_doctor(tmp_path, **sink, commit="spark") == f"{sent}, {line}"

    config = configured(tmp_path, p={"target": sink})
    DeltaTable.create(
        str(tmp_path / "lake" / "rivermouth" / "ledger_p"), FLOATS, partition_by=["x"]
    )
    way = way_now(config.pipelines["p"], Lake.if_any(config))
    why = "the table is partitioned by x, which is of the type double"
    assert str(way) == f"entries are committed through Spark: {why}"


def said_by_doctor(folder: Path, **target: Any) -> str:
    """What doctor says of a pipeline with such a target."""
    configured(folder, p={"target": target})
    checks = check_config(folder / "lake.yml", unresolved)
    return next(each.found for each in checks if each.name == "pipeline p")
