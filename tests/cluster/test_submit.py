"""A job that spark-submit starts, on executors that have nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from rivermouth.local.standalone import LocalCluster
from tests.cluster.kinds import lake_of
from tests.cluster.lake import ClusterLake
from tests.faults.outcomes import check_proved
from tests.processes import said_by, started

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.thorough
def test_spark_submit_needs_what_was_packed_and_executors_need_nothing(
    tmp_path: Path, rivermouth_broker: Broker, rivermouth_store: LocalS3
) -> None:
    """Executors run another Python, without any package."""
    bare = {"PATH": os.environ["PATH"], "JAVA_HOME": os.environ.get("JAVA_HOME", "")}
    python = str(Path(sys.base_prefix, "bin", "python3"))
    with LocalCluster(2, environ=bare) as own:
        lake = ClusterLake(
            tmp_path,
            rivermouth_broker.bootstrap_servers,
            store=rivermouth_store,
            prefix=f"of/{tmp_path.name}",
            cluster=own,
        )
        records = lake_of(lake, "submitted", "own")
        pack = tmp_path / "pack"
        packed = [sys.executable, "-m", "rivermouth", "cluster", "pack", str(pack)]
        subprocess.run(packed, check=True, capture_output=True)
        told = [f"--conf={name}={value}" for name, value in own.settings.items()]
        defaults = ("--properties-file", str(pack / "spark-defaults.conf"))
        job = (str(pack / "jobs" / "ingest.py"), "--config", str(lake.file))
        environ = {
            **os.environ,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        submit = Path(sys.executable).with_name("spark-submit")
        with started([str(submit), *told, *defaults, *job], environ) as driver:
            said = said_by(driver)
    assert driver.returncode == 0, said
    check_proved(lake, records)
