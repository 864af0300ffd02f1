"""Runs every pipeline of the configuration on a real broker and real Delta tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from ruamel.yaml import YAML

from rivermouth import Config, load
from rivermouth.config import TableName
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
BAD = b"this is no JSON"


def good(pipeline: str) -> list[bytes]:
    """Its records in tests/records, one in each line. Each must become a row of its own."""
    file = ROOT / "tests" / "records" / f"{pipeline}.jsonl"
    return file.read_bytes().splitlines() if file.exists() else []


@dataclass(frozen=True)
class Lake:
    """A folder for the tables, and the configuration for this machine."""

    folder: Path
    file: Path
    servers: str

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

    def rows(self, table: TableName) -> list[dict[str, Any]]:
        engine = QueryBuilder().register("t", DeltaTable(table.path(self.folder)))
        found = pa.table(engine.execute("SELECT * FROM t").read_all())
        return list(found.to_pylist())


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker) -> Lake:
    """An empty lake; each pipeline reads an empty topic with its own name.

    The topics that pipelines send to have the names that they have.
    """
    from rivermouth.testing import create_topic  # not at the top: pytest imports a plugin first

    beside = shutil.copytree(CONFIG.parent, tmp_path / "config")  # your functions may be there
    made = Lake(tmp_path / "lake", beside / CONFIG.name, rivermouth_broker.bootstrap_servers)
    on_this_machine(CONFIG, made.file, made.servers)
    pipelines = made.config.pipelines
    sent_to = {topic for each in pipelines.values() for topic in each.target.kafka or ()}
    for topic in {*pipelines, *sent_to}:
        create_topic(made.servers, topic)
    return made


def on_this_machine(config: Path, file: Path, servers: str) -> None:
    """Check the configuration, and write it for the test's broker and topics.

    Your Kafka options and start offsets are those of your own broker, so they are left out.
    """
    load(config, ENVIRON)
    yaml = YAML(typ="safe", pure=True)
    whole = yaml.load(config.read_text(encoding="utf-8"))
    whole["kafka"] = {"bootstrap.servers": servers}
    for name, pipeline in whole["pipelines"].items():
        source = pipeline["source"].items()
        kept = {key: each for key, each in source if not key.startswith(("kafka.", "start"))}
        pipeline["source"] = {**kept, "topics": [name]}
    with file.open("w", encoding="utf-8") as text:
        yaml.dump(whole, text)


def test_a_good_record_becomes_a_row_and_a_bad_one_goes_to_quarantine(lake: Lake) -> None:
    from rivermouth.testing import produce

    pipelines = lake.config.pipelines
    for name in filter(good, pipelines):
        produce(lake.servers, name, [(None, each, 0) for each in (*good(name), BAD)])

    said = lake.job("ingest.py")

    # A commit that others were faster than leaves its bad records, too: they do not count.
    commits = {each["commit"] for each in lake.rows(TableName("rivermouth", "offsets"))}
    for name, pipeline in pipelines.items():
        assert f"{name}: OK" in said
        table = pipeline.target.table
        others = [each for each, one in pipelines.items() if one.target.table == table]
        assert len(lake.rows(table)) == sum(len(good(each)) for each in others)
        if good(name):
            bad = [
                each
                for each in lake.rows(table.quarantine)
                if each["pipeline"] == pipeline.ledger_name and each["commit"] in commits
            ]
            assert [(each["value"], each["code"]) for each in bad] == [(BAD, "RM603")]
    lake.job("verify.py")  # reads the topics and the tables again and compares them
