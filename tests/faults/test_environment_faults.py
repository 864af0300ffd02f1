"""What this machine may do to a run: a full disk, one that is read-only, no more files."""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.errors import RivermouthError
from rivermouth.local.broker import Broker
from tests.faults.outcomes import check_proved
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, bid, retrying
from tests.points import passing
from tests.processes import jvm_of, said_by
from tests.waiting import wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def disk(lake: SparkLake) -> Iterator[SmallDisk]:
    """A small disk, on which the warehouse lies."""
    lake.settings = {"warehouse": "./disk/lake"}
    with small_disk(lake.folder / "disk") as mounted:
        yield mounted


def filled(lake: SparkLake, topic: str, **target: Any) -> None:
    """A pipeline ``p`` that has committed five records."""
    lake.topic(topic, 2)
    pipeline = append_pipeline(topic)
    pipeline["target"].update(target)
    lake.configure(p=retrying(pipeline, 1))
    lake.bids(topic, partitions=2)
    lake.go()


def stopped(lake: SparkLake) -> RivermouthError:
    """What a run ended with that had something to write and could not."""
    error = lake.refused()
    assert error.exit_code == 1, str(error)
    return error


def log_is_whole(log: Path) -> None:
    """Every commit that is there is there whole."""
    for file in log.glob("*.json"):
        lines = file.read_text("utf-8").split("\n")
        assert [json.loads(line) for line in lines if line], file.name


@pytest.mark.thorough
def test_a_disk_that_fills_up_at_any_moment_leaves_no_torn_commit(
    lake: SparkLake, disk: SmallDisk
) -> None:
    filled(lake, "full")
    said = list[RivermouthError]()
    # Nothing fits; rows do and their commit does not; the offsets table does not; all does.
    for pages in range(20):
        lake.bids("full", partitions=2)
        disk.leave(pages)
        [report] = lake.run(lake.spark, "p").ends
        log_is_whole(disk.path / "lake" / "bronze" / "full" / "_delta_log")
        log_is_whole(disk.path / "lake" / "rivermouth" / "offsets" / "_delta_log")
        if report.error is None:
            break
        assert report.error.exit_code == 1, str(report.error)
        said.append(report.error)
    assert {each.code for each in said} == {"RM503", "RM505"}
    assert [each.found for each in said if "No space left on device" not in each.found] == []
    assert all(str(each).isprintable() for each in said)

    disk.clear()

    lake.bids("full")
    lake.go()
    check_proved(lake, records=5 * (len(said) + 3))


@pytest.mark.takes_long("P16-RM503", "P18-RM505")
@pytest.mark.parametrize(("point", "code"), [("P16", "RM503"), ("P17", "RM503"), ("P18", "RM505")])
def test_a_disk_that_is_full_once_files_are_written_leaves_whole_commits(
    lake: SparkLake,
    disk: SmallDisk,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    code: str,
) -> None:
    """Neither that of the quarantine fits, nor that of the table, nor the checkpoint behind it."""
    topic = f"full_{point}"
    filled(lake, topic, properties={"delta.checkpointInterval": 1})
    lake.bids(topic, partitions=2)
    lake.produce(topic, [(None, b"{oops", 0)])
    passing(monkeypatch, lambda name: disk.leave(0) if name == point else None)

    error = stopped(lake)

    assert error.code == code
    assert "No space left on device" in error.found
    assert "run again" in error.remedy.lower()
    for log in (disk.path / "lake").rglob("_delta_log"):
        log_is_whole(log)
    monkeypatch.undo()
    disk.clear()
    lake.go()
    check_proved(lake, records=11)


@pytest.mark.thorough
def test_a_disk_that_fills_up_while_files_are_written_keeps_no_part_of_one(
    lake: SparkLake, disk: SmallDisk
) -> None:
    filled(lake, "partly")
    dice = random.Random(7)
    many = [(None, bid(dice.getrandbits(62), dice.getrandbits(62)), 0) for _ in range(20_000)]
    lake.produce("partly", [(None, b"{oops", 0), *many])  # of one partition: one task has them
    table = disk.path / "lake" / "bronze" / "partly"
    before = data_files(table)
    disk.leave(50)

    error = stopped(lake)

    assert error.code == "RM503"
    assert "No space left on device" in error.found
    assert str(error).endswith("Nothing of this batch is visible; fix the cause and run again")
    assert data_files(table) == before
    assert data_files(table.with_name("partly_quarantine")) == set()
    disk.clear()
    lake.go()
    check_proved(lake, records=20_006)


def data_files(table: Path) -> set[str]:
    return {each.name for each in table.glob("*.parquet")}


def test_a_read_only_disk_fails_the_run_and_only_as_long_as_it_is_one(
    lake: SparkLake, disk: SmallDisk
) -> None:
    filled(lake, "readonly")
    lake.bids("readonly")
    disk.make_read_only(True)
    try:
        error = stopped(lake)
        assert error.code == "RM503"
        assert "Read-only file system" in error.found
        check_proved(lake, records=5)
    finally:
        disk.make_read_only(False)

    lake.go()
    check_proved(lake, records=10)


@contextmanager
def limited(process: int, what: int, limit: int) -> Iterator[None]:
    """Give a process a lower limit for as long as the block takes."""
    before = resource.prlimit(process, what)
    resource.prlimit(process, what, (limit, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # the limit may have been its end
            resource.prlimit(process, what, before)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are Linux's")
def test_files_that_cannot_grow_leave_no_torn_commit(lake: SparkLake) -> None:
    filled(lake, "short", commit="spark")  # the JVM writes
    lake.bids("short")
    jvm = lake.spark._jvm
    assert jvm is not None
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    with limited(process, resource.RLIMIT_FSIZE, 2000):
        stopped(lake)
    log_is_whole(lake.path("bronze.short") / "_delta_log")

    lake.go()
    check_proved(lake, records=10)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are Linux's")
def test_a_driver_that_may_open_no_more_files_fails_and_the_next_run_goes_on(
    lake: SparkLake,
) -> None:
    lake.topic("handles")
    lake.configure(p=retrying(append_pipeline("handles"), 1))
    lake.bids("handles")
    with lake.driver("p", continuous=True) as process:
        wait_for_rows(lake.path("bronze.handles"), 5)
        with limited(jvm_of(process), resource.RLIMIT_NOFILE, 10):
            lake.bids("handles")
            said = said_by(process)

    assert process.returncode == 1, said
    assert "Too many open files" in said
    lake.go()
    check_proved(lake, records=10)


def test_the_lake_and_its_scratch_may_lie_in_a_folder_of_any_name(
    tmp_path: Path, rivermouth_broker: Broker, rivermouth_spark: SparkSession
) -> None:
    folder = tmp_path / "a häuser's ${HOME} {x} #?*:="
    folder.mkdir()
    lake = SparkLake(folder, rivermouth_broker.bootstrap_servers, rivermouth_spark)
    filled(lake, "anywhere")
    lake.bids("anywhere")

    lake.go()

    check_proved(lake, records=10)
    assert [each.name for each in tmp_path.iterdir()] == [folder.name], "written elsewhere"
