"""Drivers whose executors outlive them, whose tasks run twice, or who see another folder."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace

import pytest

from tests.cluster.kinds import lake_of
from tests.cluster.lake import ClusterLake, environment
from tests.faults.outcomes import check_proved
from tests.lake import append_pipeline
from tests.processes import said_by, started

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["own", "upsert"])
def test_tasks_that_spark_runs_twice_for_speed_count_once(
    clustered: ClusterLake, kind: str
) -> None:
    eager = {"spark.speculation": "true", "spark.speculation.interval": "10ms"}
    eager |= {"spark.speculation.multiplier": "1.01", "spark.speculation.quantile": "0.1"}
    lake = replace(clustered, more={**eager, "spark.speculation.minTaskRuntime": "1ms"})
    records = lake_of(lake, f"twice-{kind}", kind)
    with lake.driver("p") as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said
    check_proved(lake, records)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["own", "upsert"])
def test_a_driver_that_dies_while_its_executors_live_on_leaves_every_record_once(
    clustered: ClusterLake, kind: str
) -> None:
    records = lake_of(clustered, f"orphans-{kind}", kind)
    for point in ("P16", "P17", "P18"):
        with clustered.driver("p", failpoints=f"{point}=kill") as driver:
            said = said_by(driver)
        assert driver.returncode == -signal.SIGKILL, said
    with clustered.driver("p") as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said
    check_proved(clustered, records)


@pytest.mark.thorough
def test_a_folder_that_executors_do_not_share_is_refused(clustered: ClusterLake) -> None:
    """Executors find another folder under this path than the driver, as on other machines."""
    topic = "not-shared"
    clustered.topic(topic)
    clustered.bids(topic)
    settings = {k: v for k, v in clustered.settings.items() if k != "storage"}
    clustered.settings = {**settings, "warehouse": "/proc/self/cwd/lake"}
    clustered.configure(p=append_pipeline(topic))
    command = [sys.executable, "-m", "tests.driver", str(clustered.file), "once", "p"]
    scratch = {"RIVERMOUTH_SCRATCH": str(clustered.scratch)}
    with started(command, {**environment(), **scratch}, cwd=clustered.folder) as driver:
        said = said_by(driver)
    assert driver.returncode == 2, said
    assert "tasks write where the driver does not see it" in said
    assert "RM211" in said
