"""Fixtures of several files: a lake on the broker, and drivers over the edges in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.builders import place
from tests.doubles import World
from tests.faults.model.recorder import Recorder
from tests.faults.spark_lake import SparkLake


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker, rivermouth_spark: SparkSession) -> SparkLake:
    """An empty lake of the test's own on the shared broker; name topics apart."""
    return SparkLake(tmp_path, rivermouth_broker.bootstrap_servers, rivermouth_spark)


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Drivers over a topic of two partitions, whose steps are traced."""
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(file))
    return Recorder(file, World(ends={place(): 12, place(1): 5}))
