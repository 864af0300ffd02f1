"""The configuration on a real broker and real Delta tables: every pipeline starts and commits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth import load
from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic

pytest_plugins = ["rivermouth.testing"]

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "config" / "rivermouth.yml"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, rivermouth_broker: Broker) -> Path:
    """A folder for the tables, and every topic of the configuration, empty."""
    topics = {t for each in load(CONFIG).pipelines.values() for t in each.source.topics}
    for topic in topics:
        create_topic(rivermouth_broker.bootstrap_servers, topic)
    return tmp_path_factory.mktemp("lake")


def job(name: str, lake: Path, broker: Broker) -> str:
    """What a job says; it must succeed."""
    command = [sys.executable, str(ROOT / "jobs" / name), f"--config={CONFIG}", f"--local={lake}"]
    done = subprocess.run(
        [*command, f"--set=KAFKA_BOOTSTRAP={broker.bootstrap_servers}"],
        cwd=ROOT,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_every_pipeline_starts_and_its_ledger_is_sound(
    lake: Path, rivermouth_broker: Broker
) -> None:
    said = job("ingest.py", lake, rivermouth_broker)
    for name, pipeline in load(CONFIG).pipelines.items():
        assert f"{name}: OK" in said
        assert pipeline.target.table.path(lake).is_dir()
    job("verify.py", lake, rivermouth_broker)
