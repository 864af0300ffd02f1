"""Runs every pipeline of the configuration on a real broker and real Delta tables."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rivermouth import Config, load
from rivermouth.local.broker import Broker

pytest_plugins = ["rivermouth.testing"]

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "config" / "rivermouth.yml"
PASSED = {  # the jobs pass these on Databricks
    "KAFKA_BOOTSTRAP": "localhost:9092",
    "CATALOG": "main",
    "SCHEMA": "tried",
    "VOLUME": "state",
    "SECRET_SCOPE": "scope",
}
ENVIRON = {**os.environ, **PASSED}


@dataclass(frozen=True)
class Lake:
    """A folder for the tables, and the configuration for this machine."""

    folder: Path
    file: Path

    @property
    def config(self) -> Config:
        return load(self.file, ENVIRON, folder=self.folder)

    def job(self, name: str) -> str:
        """Run a job, which must succeed, and return its output."""
        command = [sys.executable, str(ROOT / "jobs" / name), f"--config={self.file}"]
        passed = [f"--set={each}={text}" for each, text in PASSED.items()]
        done = subprocess.run(
            [*command, f"--local={self.folder}", *passed],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker) -> Lake:
    """An empty lake, with an empty topic for each topic of the configuration."""
    from rivermouth.testing import create_topic  # not at the top: pytest imports a plugin first

    file = tmp_path / "rivermouth.yml"
    servers = rivermouth_broker.bootstrap_servers
    on_this_machine(CONFIG, file, servers)
    made = Lake(tmp_path / "lake", file)
    for topic in {t for each in made.config.pipelines.values() for t in each.source.topics}:
        create_topic(servers, topic)
    return made


def on_this_machine(config: Path, file: Path, servers: str) -> None:
    """Check the configuration, and write it for the test's broker, without your Kafka options.

    The topics are new on that broker, so settings of a start offset are left out too. A pattern
    would match none of them: a topic with the name of the pipeline stands for it.
    """
    load(config, ENVIRON)
    yaml = YAML(typ="safe", pure=True)
    whole = yaml.load(config.read_text(encoding="utf-8"))
    whole["kafka"] = {"bootstrap.servers": servers}
    for name, pipeline in whole["pipelines"].items():
        source = pipeline["source"]
        if isinstance(source.get("topics"), dict):
            source["topics"] = [name]
        for key in [each for each in source if each.startswith(("kafka.", "start"))]:
            del source[key]
    with file.open("w", encoding="utf-8") as text:
        yaml.dump(whole, text)


def test_every_pipeline_starts_and_its_ledger_is_sound(lake: Lake) -> None:
    said = lake.job("ingest.py")
    for name, pipeline in lake.config.pipelines.items():
        assert f"{name}: OK" in said
        assert pipeline.target.table.path(lake.folder).is_dir()
    lake.job("verify.py")
