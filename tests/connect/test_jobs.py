"""The jobs on serverless compute: ingest, proof and maintenance, by nothing that is refused there.

What stands in for it does refuse, call by call.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LocalRelation
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from rivermouth.local.broker import Broker
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.connect.serverless import NOT_IN_SESSIONS, NOT_THERE, Refused, refuse
from tests.lake import append_pipeline, bid, order, upsert_pipeline

RECORDS = 60


def run_jobs(lake: ConnectLake, *scripts: str) -> subprocess.CompletedProcess[str]:
    """Run the scripts of ``jobs/`` on all pipelines, in one driver of their own."""
    environ = {
        **os.environ,
        "SPARK_REMOTE": lake.server.url,
        "RIVERMOUTH_PLATFORM": "serverless",
        "RIVERMOUTH_SCRATCH": str(lake.scratch),
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.connect.jobs", str(lake.catalog_file), *scripts],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
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
def test_ingest_verify_and_maintain_need_nothing_that_serverless_refuses(
    rivermouth_broker: Broker, connect_server: ConnectServer, tmp_path: Path
) -> None:
    lake = ConnectLake(tmp_path, rivermouth_broker.bootstrap_servers, connect_server, "serverless")
    lake.topic("jobs-a", 2)
    lake.topic("jobs-u")
    lake.describe(
        a=append_pipeline("jobs-a", max_offsets_per_trigger=20),
        u=upsert_pipeline("jobs-u", max_offsets_per_trigger=20),
    )
    bad = {7: b"{oops", 33: b""}
    lake.produce("jobs-a", [(None, bad.get(n, bid(n)), n % 2) for n in range(RECORDS)])
    orders = [(b"%d" % (n % 9), bad.get(n, order(n % 9, "open", n)), 0) for n in range(RECORDS - 1)]
    lake.produce("jobs-u", [*orders, (b"3", None, 0)])

    ended = run_jobs(lake, "ingest", "verify", "maintain", "verify")

    assert ended.returncode == 0, ended.stdout
    proofs = [line for line in ended.stdout.splitlines() if line.startswith("verify ended with 0")]
    assert len(proofs) == 2, ended.stdout
    found = counts(ended.stdout)
    assert set(found) == {
        *("bronze.jobs_a", "bronze.jobs_a_quarantine"),
        *("silver.jobs_u", "silver.jobs_u_quarantine"),
        "rivermouth.offsets",
    }, ended.stdout
    assert found["bronze.jobs_a"][0] > 1, ended.stdout
    assert found["rivermouth.offsets"][0] > 1, ended.stdout
    assert "left alone" not in ended.stdout


# What stands in for serverless compute refuses, without a server


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of this process refuse, for one test."""
    for name in NOT_THERE:
        monkeypatch.setattr(DataFrame, name, getattr(DataFrame, name))
    for name in (*NOT_IN_SESSIONS, "sql"):
        monkeypatch.setattr(SparkSession, name, getattr(SparkSession, name))
    for name in ("set", "unset"):
        monkeypatch.setattr(RuntimeConf, name, getattr(RuntimeConf, name))
    for owner, name in ((DataFrameWriter, "save"), (DataFrameReader, "load")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setattr(DataStreamWriter, "start", DataStreamWriter.start)
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
    **{name: calling(DataFrame, name) for name in NOT_THERE},
    **{name: calling(SparkSession, name) for name in NOT_IN_SESSIONS},
    "setting a conf": lambda: unmade(RuntimeConf).set("spark.databricks.delta.x", "1"),
    "unsetting one": lambda: unmade(RuntimeConf).unset("spark.databricks.delta.x"),
    "a table by its path in SQL": lambda: unmade(SparkSession).sql("OPTIMIZE delta.`/tables/a`"),
    "SET in SQL": lambda: unmade(SparkSession).sql("SET spark.sql.ansi.enabled = true"),
    "writing a table by its path": lambda: writer(DataFrameWriter).format("delta").save("/a"),
    "reading one": lambda: unmade_reader().format("delta").load("/tables/a"),
    "a stream without end": lambda: writer(DataStreamWriter).start(),
}


@pytest.mark.unit
@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_serverless_refuses_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(Refused):
        call()


ALLOWED: dict[str, Callable[[], object]] = {
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
def test_the_stand_in_is_gone_after_a_test() -> None:
    assert "refus" not in DataFrame.cache.__qualname__
