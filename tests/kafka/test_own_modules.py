"""Own code beside the configuration file: doctor imports it, and Spark's workers find it, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import unresolved, user_modules
from rivermouth.operate.doctor import check_config
from tests.faults.outcomes import went_well
from tests.kafka.test_sinks import calling
from tests.lake import Lake, append_pipeline, bid, retrying

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

CODE = """\
from pathlib import Path
from pyspark.sql import functions as F
from code_beside_too import twice

def doubled(price):
    import calendar
    return twice(price) if calendar.isleap(2024) else None

def rows(df, batch):
    made = F.udf(doubled, "bigint")("price")
    return df.select("auction", made.alias("twice"), "_kafka")

def store(rows, batch, partition_id):
    with Path(__file__).with_name("stored").open("a") as file:
        file.writelines(f"{each['auction']}\\n" for each in rows)
"""


@pytest.fixture
def code(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a configuration with modules of its own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_modules, "_TAKEN", {})
    (lake.folder / "code_beside.py").write_text(CODE, encoding="utf-8")
    too = "def twice(value):\n    return 2 * value\n"
    (lake.folder / "code_beside_too.py").write_text(too, encoding="utf-8")
    # Workers look into their own folders first, and Python's own module goes before this one.
    (lake.folder / "calendar.py").write_text("raise RuntimeError", encoding="utf-8")
    return lake.folder


@pytest.mark.thorough
def test_a_session_that_runs_already_finds_code_beside_the_file(
    lake: Lake, code: Path, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = rivermouth_spark.sparkContext
    monkeypatch.setattr(context, "environment", {**context.environment, "PYTHONPATH": "/before"})
    lake.topic("own-beside")
    lake.produce("own-beside", [(None, bid(each, each), 0) for each in range(5)])
    plain = append_pipeline("own-beside")
    made = {
        **plain,
        "transform": "code_beside:rows",
        "target": {**plain["target"], "schema": "auction BIGINT, twice BIGINT"},
    }
    broken = {**made, "transform": "code_beside:gone", "target": {**made["target"], "table": "s.b"}}
    called = calling("own-beside", "code_beside:store")
    lake.configure(p=retrying(made, 3), q=retrying(called, 3), broken=broken)

    found = {each.name: each for each in check_config(lake.file, unresolved)}
    went_well(lake.run(rivermouth_spark, "p", "q"))

    assert sorted(row["twice"] for row in lake.rows("bronze.own_beside")) == [0, 2, 4, 6, 8]
    assert sorted((code / "stored").read_text(encoding="utf-8").split()) == [*"01234"]
    before, own = context.environment["PYTHONPATH"].split(":")
    assert before == "/before"
    modules = {each.stem for each in Path(own).iterdir()}
    assert "calendar" not in modules
    assert modules > {"code_beside", "code_beside_too"}
    assert found["pipeline p"].ok
    assert found["pipeline q"].ok
    failed = found["pipeline broken"]
    assert not failed.ok
    assert "RM206 code_beside:gone, the function cannot be imported" in failed.found
    assert str(code / "code_beside.py") in failed.found
    assert "beside the configuration file" in failed.fix
