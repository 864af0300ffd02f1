"""Tasks that die, are tried again or run twice while they write files: no commit names these."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.config import load
from rivermouth.operate.maintain import Maintenance
from rivermouth.warehouse.spark_commits import session_confs
from rivermouth.write.landings import files as landing
from tests.faults.cluster import cluster
from tests.faults.misdeeds import BATCH_ROWS, SETTINGS, misbehaving
from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, bid, insert_pipeline, retrying, sums_pipeline
from tests.processes import said_by, started
from tests.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.thorough,
]

RECORDS = 8 * BATCH_ROWS
"""Of a batch, over two partitions: a task gets several batches of Arrow."""
DAYS_S = 8 * 86_400
"""For less than that a file may be one of a batch that is being written."""


def ready(lake: SparkLake, topic: str) -> Path:
    """A pipeline ``p`` that has committed a batch, and has another one to read."""
    lake.topic(topic, 2)
    lake.configure(p=retrying(append_pipeline(topic), PATIENCE_S))
    produce(lake, topic)
    lake.go()
    produce(lake, topic)
    return lake.path(f"bronze.{topic}")


def produce(lake: SparkLake, topic: str) -> None:
    """A batch of records; one of each partition is bad."""
    good = [(None, bid(n), n % 2) for n in range(RECORDS - 2)]
    lake.produce(topic, [*good, (None, b"{oops", 0), (None, b"{oops", 1)])


def orphans(table: Path) -> set[Path]:
    """The data files in the folder of a table that its newest version does not name."""
    named = {Path(each).name for each in DeltaTable(str(table)).file_uris()}
    return {each for each in table.glob("*.parquet") if each.name not in named}


def check_once(lake: SparkLake, table: Path) -> None:
    """Each record is there once, what the dead have left is unseen, and maintenance removes it."""
    check_proved(lake, records=2 * RECORDS)
    assert DeltaTable(str(table)).count() == 2 * (RECORDS - 2)
    left = orphans(table)
    assert left, "the attempt that did not end has left no file"
    left |= orphans(table.with_name(f"{table.name}_quarantine"))
    for each in left:
        os.utime(each, (time.time() - DAYS_S, time.time() - DAYS_S))

    [report] = Maintenance(load(lake.file), lake.spark, lake.scratch).pipelines(["p"])

    assert report.error is None
    assert not any(each.exists() for each in left)
    check_proved(lake, records=2 * RECORDS)


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def test_a_batch_whose_python_worker_is_killed_is_tried_again(
    lake: SparkLake, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark does not try the task again: a session on one machine does not."""
    table = ready(lake, "worker")
    monkeypatch.setattr(landing, "Writing", misbehaving("worker", marks))
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"

    with session_confs(lake.spark, {rows: SETTINGS[rows]}):
        heard = lake.go()

    [retry] = heard.retries
    assert retry.error.code == "RM503"
    assert "Python worker exited unexpectedly" in retry.error.found
    assert [each.applied for each in heard.commits] == [RECORDS - 2]
    check_once(lake, table)


MASTERS = {"worker": "local[2,4]", "executor": "", "slow": ""}
"""Where Spark tries a task again; empty: a cluster."""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two executors."""
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.mark.parametrize("kind", MASTERS)
def test_a_task_that_is_tried_again_or_runs_twice_writes_its_rows_once(
    lake: SparkLake,
    marks: Path,
    kind: str,
    request: pytest.FixtureRequest,
) -> None:
    table = ready(lake, f"task_{kind}")
    url = MASTERS[kind] or str(request.getfixturevalue("master"))
    run_with_a_misdeed(lake, url, kind, marks)
    check_once(lake, table)


def run_with_a_misdeed(lake: SparkLake, url: str, kind: str, marks: Path) -> None:
    """A run in which one task needs a second attempt."""
    command = [sys.executable, "-m", "tests.faults.misdeeds", str(lake.file), url, kind, str(marks)]
    environ = {**os.environ, "RIVERMOUTH_SCRATCH": str(lake.scratch)}
    with started(command, environ) as process:
        said = said_by(process)

    assert process.returncode == 0, said
    assert (marks / "again").exists(), "no task had a second attempt"
    assert "waits" not in said, "the batch, and not the task, was tried again"


KEYED = {"insert": insert_pipeline, "sums": sums_pipeline}
"""A fold by Spark of what tasks decode, and one that they begin."""


@pytest.mark.parametrize("kind", ["worker", "told"])
@pytest.mark.parametrize("mode", KEYED)
def test_a_task_of_a_fold_that_is_tried_again_counts_its_records_once(
    lake: SparkLake, marks: Path, mode: str, kind: str
) -> None:
    """Its bad records, too. ``told``: the first attempt fails once it has told of them."""
    topic = f"fold-{mode}-{kind}"
    lake.topic(topic, 2)
    config = lake.configure(p=retrying(KEYED[mode](topic), PATIENCE_S))
    produce(lake, topic)

    run_with_a_misdeed(lake, MASTERS["worker"], kind, marks)

    check_proved(lake, records=RECORDS)
    quarantine = lake.path(str(config.pipelines["p"].target.table.quarantine))
    assert DeltaTable(str(quarantine)).count() == 2, "the rows of one attempt count"
    assert orphans(quarantine), "the attempt that failed has left no file"
