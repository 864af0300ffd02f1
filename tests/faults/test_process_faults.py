"""Drivers that freeze, lose their JVM, or share a table with another pipeline."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from rivermouth.local.scratch import remove_dead
from rivermouth.write.files.data_files import DataFile
from rivermouth.write.files.writing import Task, Written, carried_out
from rivermouth.write.landings import files as files_landing
from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, bid, order, upsert_pipeline
from tests.processes import jvm_of, said_by, started
from tests.waiting import PATIENCE_S, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@pytest.mark.thorough
def test_a_frozen_driver_keeps_its_successor_out_and_without_its_lock_it_stops_itself(
    lake: SparkLake,
) -> None:
    table = lake.ready("frozen")
    with lake.driver("p", continuous=True) as zombie:
        wait_for_rows(table, 5)
        os.killpg(zombie.pid, signal.SIGSTOP)
        lake.bids("frozen")
        kept_out = lake.refused()
        assert (kept_out.code, kept_out.exit_code) == ("RM413", 3)
        os.killpg(zombie.pid, signal.SIGCONT)
        wait_for_rows(table, 10)

        os.killpg(zombie.pid, signal.SIGSTOP)
        lake.bids("frozen")
        # What a lock on another machine is: one that does not reach the successor.
        shutil.rmtree(lake.warehouse / "rivermouth" / "locks")
        assert lake.go().ends[0].applied == 5
        os.killpg(zombie.pid, signal.SIGCONT)
        said = said_by(zombie)

    assert zombie.returncode == 3, said
    assert "RM403 p bronze.frozen: entry 4 is another driver's" in said
    check_proved(lake, records=15)


def test_another_process_that_starts_in_mid_batch_removes_nothing_of_it(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its start it removes what dead processes left in the scratch folders."""
    lake.topic("beside")
    lake.configure(p=upsert_pipeline("beside"))
    lake.produce("beside", [(b"%d" % n, order(n, "open", n), 0) for n in range(5)])
    files: list[DataFile] = []

    def carried_out_beside(rows: DataFrame, task: Task) -> Written:
        found = carried_out(rows, task)
        for root in (lake.scratch, *lake.scratch.iterdir()):
            if root.is_dir():
                remove_dead(root)
        files.extend(found.good)
        return found

    monkeypatch.setattr(files_landing, "carried_out", carried_out_beside)

    assert lake.go().ends[0].applied == 5

    assert [each.rows for each in files] == [5]
    check_proved(lake, records=5)


@pytest.mark.thorough
def test_a_driver_whose_jvm_dies_fails_and_the_next_run_goes_on(lake: SparkLake) -> None:
    table = lake.ready("headless")
    with lake.driver("p", continuous=True) as process:
        wait_for_rows(table, 5)
        lake.bids("headless")
        os.kill(jvm_of(process), signal.SIGKILL)
        said = said_by(process)

    assert process.returncode == 1, said
    assert "finished p: FAILED RM503 p: Spark's JVM is gone" in said, said
    lake.go()
    check_proved(lake, records=10)


@pytest.mark.thorough
def test_the_command_whose_jvm_dies_still_says_how_each_pipeline_ended(lake: SparkLake) -> None:
    for name in ("gone_a", "gone_b"):
        lake.topic(name)
        lake.bids(name)
    lake.configure(a=append_pipeline("gone_a"), b=append_pipeline("gone_b"))
    command = [sys.executable, "-m", "rivermouth", "run", str(lake.file), "--continuous", "--json"]
    environ = {**os.environ, "RIVERMOUTH_SCRATCH": str(lake.scratch), "NO_COLOR": "1"}
    with started(command, environ, stderr=subprocess.PIPE) as process:
        for name in ("gone_a", "gone_b"):
            wait_for_rows(lake.path(f"bronze.{name}"), 5)
        os.kill(jvm_of(process), signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1, out + err
    ends = json.loads(out)["pipelines"]
    assert [(each["name"], each["error"]["code"], each["retries"]) for each in ends] == [
        ("a", "RM503", 0),
        ("b", "RM503", 0),
    ]
    assert {each["error"]["what"] for each in ends} == {"Spark's JVM is gone"}
    assert err.rstrip().endswith("FAILED: 2 of 2 pipelines, exit code 1"), err
    assert "unexpected" not in err
    assert "Traceback" not in err, err


@pytest.mark.thorough
def test_two_pipelines_whose_first_records_are_bad_make_their_common_quarantine_once(
    lake: SparkLake,
) -> None:
    for number in range(3):
        names = (f"bad_a{number}", f"bad_b{number}")
        target = {"table": f"bronze.bad{number}"}
        for name in names:
            lake.topic(name)
            lake.produce(name, [(None, b"{oops", 0), (None, bid(1), 0)])
        lake.configure(**{name: {**append_pipeline(name), "target": target} for name in names})

        heard = lake.go(*names)

        assert heard.retries == []
        assert [each.quarantined for each in heard.ends] == [1, 1]
        made = DeltaTable(lake.path(f"bronze.bad{number}_quarantine")).history()
        assert sum(each["operation"].startswith("CREATE") for each in made) == 1
        check_proved(lake, records=4)


@pytest.mark.thorough
def test_two_pipelines_of_one_table_each_go_on_by_their_own_ledger(lake: SparkLake) -> None:
    def both(first: int) -> None:
        lake.produce("one", [(b"%d" % n, order(n, "one", n), 0) for n in range(first, first + 8)])
        lake.produce("two", [(b"9%d" % n, order(90 + n, "two", n), 0) for n in range(8)])

    target = {**upsert_pipeline("one")["target"], "table": "silver.shared"}
    pipelines = {
        name: {**upsert_pipeline(name, max_offsets_per_trigger=6), "target": target}
        for name in ("one", "two")
    }
    for name in pipelines:
        lake.topic(name)
    lake.configure(**pipelines)
    # The first run of both: they create their table at the same time.
    lake.go("one", "two")
    both(0)

    lake.go("one", "two")

    check_proved(lake, records=16)
    assert sorted({row["status"] for row in lake.rows("silver.shared")}) == ["one", "two"]
