"""For your own tests: real servers as pytest fixtures, and functions that fill, run, kill, prove.

Name the module as a plugin, by ``addopts = "-p rivermouth.testing"``, and use the fixture
``rivermouth_lake``, ``rivermouth_spark``, ``rivermouth_broker``, ``rivermouth_registry`` or
``rivermouth_store``. The module needs pytest. See docs/testing.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # where confluent_kafka types it

from rivermouth.local.broker import Broker
from rivermouth.local.registry import LocalRegistry
from rivermouth.local.s3 import LocalS3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermouth import Config, Report, Verification

__all__ = [
    "LocalLake",
    "Record",
    "assert_exactly_once",
    "create_topic",
    "delete_topic",
    "kill_at",
    "produce",
    "rivermouth_broker",
    "rivermouth_lake",
    "rivermouth_registry",
    "rivermouth_spark",
    "rivermouth_store",
    "run_once",
]

Record = tuple[bytes | None, bytes | None, int]  # key, value, partition
_PATIENT = {
    "broker.session.timeout.ms": "30000"
}  # a pause of a busy machine must not end the broker
_QUIET = {"log_level": 2}  # without librdkafka's warnings; failures are raised
_BRIEF = "-XX:TieredStopAtLevel=1"  # in so short a run the optimizing compiler costs CPU
_PATIENCE_S = 60.0


@pytest.fixture(scope="session")
def rivermouth_broker() -> Iterator[Broker]:
    """One running broker for the whole test session; each test needs its own topic names."""
    with Broker(settings=_PATIENT) as broker:
        yield broker


@pytest.fixture(scope="session")
def rivermouth_registry() -> Iterator[LocalRegistry]:
    """One running schema registry for the whole test session; each test needs its own subjects."""
    with LocalRegistry() as registry:
        yield registry


@pytest.fixture(scope="session")
def rivermouth_store() -> Iterator[LocalS3]:
    """One running object store for the whole test session; each test needs its own prefix."""
    with LocalS3() as store:
        yield store


@pytest.fixture(scope="session")
def rivermouth_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session with Delta and Kafka for the whole test session."""
    from rivermouth.local.session import BRIEF, start_session

    session = start_session(tmp_path_factory.mktemp("spark"), java_options=BRIEF)
    yield session
    session.stop()


@dataclass(frozen=True)
class LocalLake:
    """A broker, and a folder for the tables of one test."""

    folder: Path
    bootstrap_servers: str
    _topics: list[str] = field(default_factory=list)

    def topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic, which is gone after the test. Raises KafkaException."""
        create_topic(self.bootstrap_servers, name, partitions)
        self._topics.append(name)

    def configure(self, text: str) -> Path:
        """Write a configuration into the folder; its file."""
        file = self.folder / "lake.yml"
        file.write_text(text, encoding="utf-8")
        return file


@pytest.fixture
def rivermouth_lake(
    tmp_path: Path, rivermouth_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalLake]:
    """A broker, and an empty folder. A file of yours gets them from the environment.

    ``KAFKA_BOOTSTRAP`` is the address of the broker, and ``WAREHOUSE`` the folder.
    """
    lake = LocalLake(tmp_path / "lake", rivermouth_broker.bootstrap_servers)
    lake.folder.mkdir()
    monkeypatch.setenv("KAFKA_BOOTSTRAP", lake.bootstrap_servers)
    monkeypatch.setenv("WAREHOUSE", str(lake.folder))
    yield lake
    for name in lake._topics:
        delete_topic(lake.bootstrap_servers, name)


def run_once(
    config: Config | Path | str, spark: SparkSession | None = None, select: str | None = None
) -> Report:
    """Run the pipelines of a file up to where their topics end now; what each one did.

    In this process, in the session ``spark``; None: in that of the process, or in one that the call
    starts and ends. ``select``: names with commas; None: all pipelines. An error of a pipeline is
    in the report. Raises ConfigError.
    """
    from rivermouth import ingest

    return ingest(config, spark, select)


def kill_at(point: str, config: Path | str, select: str = "", *, times: int = 1) -> None:
    """Run pipelines of a file in a process that kills itself at a point; return when it is dead.

    The point is one of those that ``rivermouth.debug`` lists, such as ``P6``; the process passes it
    once for each commit, and dies when it does so for the ``times``-th time. Its JVM dies, too.
    Raises AssertionError with the output where it ended otherwise.
    """
    environ = {
        **os.environ,
        "RIVERMOUTH_FAILPOINTS": f"{point}={times}*kill",
        "JDK_JAVA_OPTIONS": f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {_BRIEF}".strip(),
    }
    command = [sys.executable, "-m", "rivermouth", "run", str(config), "--select", select]
    process = subprocess.Popen(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate()
    finally:
        with suppress(ProcessLookupError, PermissionError):  # none is left
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != -signal.SIGKILL:
        what = f"the run did not die at {point}, passed {times} time(s)"
        raise AssertionError(f"{what}; it ended with exit code {process.returncode}:\n{said}")


def assert_exactly_once(config: Config | Path | str, pipeline: str | None = None) -> Verification:
    """Prove what has been read, as ``rivermouth verify --strict`` does; the figures of the proof.

    ``pipeline``: names with commas; None: all pipelines. Of what no run has read yet nothing is
    told: compare ``records``. Raises AssertionError with the findings, also where something could
    not be checked, and ConfigError.
    """
    from rivermouth import verify

    proof = verify(config, select=pipeline, strict=True, record=False)
    if not proof.ok:
        raise AssertionError(str(proof))
    return proof


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with one replica; return when it exists. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    topic = NewTopic(name, partitions, 1, config=dict(config or {}))
    admin.create_topics([topic])[name].result(30)


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic; return when its name is free. Raises KafkaException, and TimeoutError."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.delete_topics([name])[name].result(30)
    deadline = time.monotonic() + _PATIENCE_S
    while name in admin.list_topics(timeout=10).topics:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the topic {name} is not gone after {_PATIENCE_S:.0f} s")
        time.sleep(0.03)


def produce(bootstrap: str, topic: str, records: Iterable[Record]) -> int:
    """Write ``records``; return their number when the broker has acknowledged all.

    The order within a partition is kept. Raises KafkaException for the first failure.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **_QUIET})
    failed: list[KafkaError] = []
    count = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for key, value, partition in records:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=on_delivery)
            except BufferError:  # librdkafka's queue is full
                producer.poll(0.1)
            else:
                break
        count += 1
        producer.poll(0)
    left = producer.flush(60)
    if failed or left:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))
    return count
