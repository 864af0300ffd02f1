"""The jobs where Spark is reached through Connect: on clusters in standard mode, and on serverless
compute by nothing that is refused there. What stands in for it does refuse, call by call.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError, PySparkNotImplementedError
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LocalRelation
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from rivermouth.config import load
from rivermouth.local.broker import Broker
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.connect.serverless import NOT_THERE, RESTRICTED, Refused, refuse
from tests.modes import MODES, PARTITIONS

RECORDS = 60
PLATFORMS = ("standard", "serverless")


def run_jobs(lake: ConnectLake, *scripts: str) -> subprocess.CompletedProcess[str]:
    """Run the scripts of ``jobs/`` on all pipelines, in one driver of their own."""
    where = {"SPARK_REMOTE": lake.server.url, "RIVERMOUTH_PLATFORM": lake.platform}
    return subprocess.run(
        [sys.executable, "-m", "tests.connect.jobs", str(lake.catalog_file), *scripts],
        env={**lake.environ, **where},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1_200,
        check=False,
        cwd=Path(__file__).parents[2],
    )


def counts(said: str) -> dict[str, tuple[int, int, int]]:
    """Compacted files, removed files and orphan rows by table, of the first that names it."""
    found: dict[str, tuple[int, int, int]] = {}
    for line in said.splitlines():
        told = re.fullmatch(r"\w+ +(\w+\.\w+) +([\d,]+) +([\d,]+) +([\d,]+)", line.strip())
        if told:
            numbers = [int(each.replace(",", "")) for each in told.groups()[1:]]
            found.setdefault(told[1], (numbers[0], numbers[1], numbers[2]))
    return found


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("platform", PLATFORMS)
def test_ingest_verify_and_maintain_do_their_work_in_every_mode(
    rivermouth_broker: Broker, connect_server: ConnectServer, tmp_path: Path, platform: str
) -> None:
    lake = ConnectLake(tmp_path, rivermouth_broker.bootstrap_servers, connect_server, platform)
    limit = {"max_offsets_per_trigger": RECORDS // 3}
    topics = {name: f"{platform[:2]}-{name}" for name in MODES}
    ways: dict[str, dict[str, Any]] = {
        "append": {"topics": {"pattern": f"{platform[:2]}-app.*"}, "min_partitions": 2},
        "upsert": {
            "topics": {"assign": {topics["upsert"]: [*range(PARTITIONS)]}},
            "max_rate_per_partition": 20,
            "mirror_group": f"{platform}-upsert",
        },
    }
    lake.describe(
        **{
            name: MODES[name].pipeline(topic, **limit, **ways.get(name, {}))
            for name, topic in topics.items()
        }
    )
    for name, topic in topics.items():
        lake.topic(topic, PARTITIONS)
        lake.produce(topic, MODES[name].records(RECORDS, seed=0))

    ended = run_jobs(lake, "ingest", "verify", "maintain", "verify")

    assert ended.returncode == 0, ended.stdout
    proofs = [line for line in ended.stdout.splitlines() if line.startswith("verify ended with 0")]
    assert len(proofs) == 2, ended.stdout
    found = counts(ended.stdout)
    tables = [each.target.table for each in load(lake.file).pipelines.values()]
    kept = {name for each in tables for name in (str(each), str(each.quarantine))}
    assert set(found) == {*kept, "rivermouth.offsets"}, ended.stdout
    assert found["rivermouth.offsets"][0] > 1, ended.stdout
    assert any(found[str(each)][0] > 1 for each in tables), ended.stdout
    assert (lake.volumes / "spark_catalog" / "rivermouth" / "state").is_dir()
    assert "skipped" not in ended.stdout


# What stands in for serverless compute refuses, without a server


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of this process refuse, for one test."""
    for owner, name in [*NOT_THERE, *(each[:2] for each in RESTRICTED)]:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    refuse()


def unmade(kind: type[Any]) -> Any:
    """An object that no server stands behind: whatever it asks of one fails otherwise."""
    return object.__new__(kind)


def unmade_reader() -> Any:
    return DataFrameReader(unmade(SparkSession))


def writer(kind: type[Any]) -> Any:
    return kind(LocalRelation(None, "a INT"), unmade(SparkSession))


def calling(kind: type[Any], name: str) -> Callable[[], object]:
    return lambda: getattr(unmade(kind), name)()


REFUSED: dict[str, Callable[[], object]] = {
    **{f"{owner.__name__}.{name}": calling(owner, name) for owner, name in NOT_THERE},
    "setting a conf": lambda: unmade(RuntimeConf).set("spark.databricks.delta.x", "1"),
    "unsetting one": lambda: unmade(RuntimeConf).unset("spark.databricks.delta.x"),
    "one from the builder": lambda: unmade(RuntimeConf)._set_all(configs={"spark.x": "1"}),
    "a table by its path in SQL": lambda: unmade(SparkSession).sql("OPTIMIZE delta.`/tables/a`"),
    "SET in SQL": lambda: unmade(SparkSession).sql("SET spark.sql.ansi.enabled = true"),
    "RESET in SQL": lambda: unmade(SparkSession).sql("RESET spark.sql.ansi.enabled"),
    "CACHE in SQL": lambda: unmade(SparkSession).sql("CACHE TABLE a"),
    "a place for a table": lambda: unmade(SparkSession).sql("CREATE TABLE a LOCATION '/a'"),
    "writing a table by its path": lambda: writer(DataFrameWriter).format("delta").save("/a"),
    "reading one": lambda: unmade_reader().format("delta").load("/tables/a"),
    "a stream without end": lambda: writer(DataStreamWriter).start(),
    "one into a table": lambda: writer(DataStreamWriter).toTable("a"),
}


@pytest.mark.unit
@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_serverless_refuses_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(Refused):
        call()


ALLOWED: dict[str, Callable[[], object]] = {
    "one of them from the builder": lambda: unmade(RuntimeConf)._set_all(
        configs={"spark.sql.session.timeZone": "UTC"}, silent=True
    ),
    "one of the six confs": lambda: unmade(RuntimeConf).set("spark.sql.session.timeZone", "UTC"),
    "a table by its name": lambda: unmade(SparkSession).sql("OPTIMIZE `main`.`bronze`.`a`"),
    "files in a volume": lambda: unmade_reader().format("parquet").load("/Volumes/a"),
    "a stream with an end": lambda: writer(DataStreamWriter).trigger(availableNow=True).start(),
}


@pytest.mark.unit
@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("call", ALLOWED.values(), ids=ALLOWED)
def test_what_it_allows_is_not_refused(call: Callable[[], object]) -> None:
    with suppress(AttributeError):  # of an object that was never made
        call()


@pytest.mark.unit
@pytest.mark.parametrize("name", ["sparkContext", "_jvm", "_jsparkSession"])
def test_a_session_of_connect_has_no_jvm(name: str) -> None:
    with pytest.raises(PySparkAttributeError, match="JVM"):
        getattr(unmade(SparkSession), name)


@pytest.mark.unit
def test_a_data_frame_of_connect_is_no_rdd() -> None:
    with pytest.raises(PySparkNotImplementedError, match="rdd"):
        _ = unmade(DataFrame).rdd


@pytest.mark.unit
def test_the_stand_in_is_gone_after_a_test() -> None:
    assert "refus" not in DataFrame.cache.__qualname__
