"""A run that has nothing to read: no session is started, and all else is done as ever."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.protocol.entry import Entry
from rivermouth.run.run import Run
from rivermouth.spark.session import Spark
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.offsets import ledger_of
from rivermouth.warehouse.ledger import audit_ledger
from tests.commands import scratch_in
from tests.folders import lake_in
from tests.lake import Heard, Lake, append_pipeline, bid, upsert_pipeline
from tests.processes import started
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BOTH = ("bids", "orders")
NEVER = threading.Event()


def entries(lake: Lake, name: str) -> list[Entry]:
    """The entries of a pipeline, as its log tells them."""
    pipeline = load(lake.file).pipelines[name]
    ledger = audit_ledger(ledger_of(lake_in(lake.warehouse), pipeline), pipeline)
    return [each.entry for each in ledger.entries]


def keep_commits(table: Path, time: str) -> None:
    """Let log clean-up leave commits for so long: an entry that is older than a third is old."""
    log = DeltaLog.of_folder(table)
    log.follow()
    metadata = log.state.metadata
    properties = {**metadata["configuration"], "delta.logRetentionDuration": time}
    changed = {"metaData": {**metadata, "configuration": properties}}
    assert log.commit(Commit("SET TBLPROPERTIES", definition=[changed]))


def loaded(lake: Lake) -> list[str]:
    """What a process says that has carried out the command: whether PySpark was imported."""
    code = (
        "import sys; from rivermouth.cli.app import main\n"
        "try: main(['run', sys.argv[1]])\n"
        "except SystemExit as ended: assert not ended.code\n"
        "print('pyspark' in sys.modules)"
    )
    environ = {**os.environ, **scratch_in(lake.scratch)}
    with started([sys.executable, "-c", code, str(lake.file)], environ) as process:
        return process.communicate(timeout=PATIENCE_S)[0].splitlines()[-1:]


def test_a_run_without_records_needs_no_spark(lake: Lake, rivermouth_spark: SparkSession) -> None:
    """``command`` without a session refuses to start one."""
    lake.topic("idle-bids", 2)
    lake.topic("idle-orders", 1)
    lake.configure(bids=append_pipeline("idle-bids"), orders=upsert_pipeline("idle-orders"))

    assert loaded(lake) == ["False"], "its import would be a seventh of the time"
    assert [len(entries(lake, each)) for each in BOTH] == [1, 1]

    lake.produce("idle-bids", [(None, bid(n), n % 2) for n in range(10)])
    read = lake.command("run", spark=rivermouth_spark)
    assert read.returncode == 0, read.stdout
    assert "starting Spark" in read.stdout
    assert sum(each.applied for entry in entries(lake, "bids") for each in entry.rows or ()) == 10

    keep_commits(lake.path("bronze.idle_bids"), "interval 3 seconds")
    time.sleep(1.5)
    idle = lake.command("run")
    assert idle.returncode == 0, idle.stdout
    assert [len(entries(lake, each)) for each in BOTH] == [3, 1], "a heartbeat, and none is due"

    lake.configure(bids=append_pipeline("idle-bids"), orders=upsert_pipeline("idle-gone"))
    gone = lake.command("run")
    assert gone.returncode == 5, gone.stdout
    assert "RM302" in gone.stdout


def test_two_runs_of_which_one_alone_has_records_start_one_session(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    starts = list[Path]()

    def start() -> SparkSession:
        starts.append(lake.file)
        return rivermouth_spark

    for name in ("one", "two"):
        lake.topic(f"idle-{name}")
    lake.configure(one=append_pipeline("idle-one"), two=append_pipeline("idle-two"))
    lake.bids("idle-one", 7)
    heard = Heard()
    run = Run(load(lake.file), Spark(start), lake.scratch, continuous=False)
    run.pipelines(("one", "two"), heard, NEVER)
    assert [each.error for each in heard.ends] == [None, None]
    assert {each.pipeline: each.applied for each in heard.ends} == {"one": 7, "two": 0}
    assert len(starts) == 1

    run = Run(load(lake.file), Spark(start), lake.scratch, continuous=False)
    run.pipelines(("one", "two"), Heard(), NEVER)
    assert len(starts) == 1
