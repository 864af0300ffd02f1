"""A real Kafka broker on this machine: one KRaft node in its own JVM.

It is for the demo, the tests and first steps. It listens on the loopback address only and keeps
one copy of the data. It ends with the process that started it, even if that process is killed.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rivermouth.local.jars import jars
from rivermouth.local.java import archive_options, find_java, java_environ
from rivermouth.local.scratch import writing
from rivermouth.local.server import HOST, Running, Server, accepts, free_port

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": "3000",  # a killed broker may return only after this time
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "16777216",  # the default takes a quarter of the heap
}


def properties_text(settings: Mapping[str, str]) -> str:
    """The text of a file of Java properties, which Java reads as ISO 8859-1."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    units = memoryview(value.encode("utf-16")).cast("H")[1:]  # the first one is the byte order
    return "".join(
        chr(unit) if unit < 128 and unit != ord("\\") else f"\\u{unit:04x}" for unit in units
    )


class Broker(Running):
    """``with Broker() as broker:`` starts a broker and stops it at the end of the block.

    Without ``directory`` the data is in a temporary folder, which ``close`` deletes. With it the
    data stays, and another broker may use it later. Without ``port`` a free port is chosen.
    ``settings`` are settings of Kafka and override ours. ``stop`` and ``start`` may be called
    again; port and data stay the same.
    """

    def __init__(
        self,
        directory: Path | None = None,
        port: int | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="rivermouth-broker-"))
        self.port = port or free_port()
        self._controller_port = free_port(besides=self.port)
        self._settings = dict(settings or {})
        self._environ = java_environ(environ)
        remove = self.directory if self._temporary else None
        self._server = Server("broker", self.bootstrap_servers, self.log, remove)

    @property
    def pid(self) -> int:
        """The process id of the JVM; 0 while stopped."""
        return self._server.pid

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """The file with the output of the JVM: warnings and errors of all starts."""
        return self.directory / "broker.log"

    def start(self, *, timeout_seconds: float = 60.0) -> None:
        """Start the broker and return when it answers requests. Does nothing while it runs.

        Raises SetupError if it does not answer in time or its port is taken.
        """
        if not self._server.must_start(self.port, self._is_ready):
            return
        with writing(self.directory):
            properties = self._prepare()
        self._format(properties)
        command = self._java("kafka.Kafka", str(properties))
        self._server.start(command, self._environ, self._is_ready, timeout_seconds)

    def stop(self) -> None:
        """End the JVM cleanly and keep its data. Does nothing while stopped."""
        self._server.stop()

    def close(self) -> None:
        """Stop, and delete the data if it is in a temporary folder."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _prepare(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        controller = f"{HOST}:{self._controller_port}"
        settings = {
            **_SETTINGS,
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.directory / "data"),
            **self._settings,
        }
        properties = self.directory / "broker.properties"
        properties.write_text(properties_text(settings), encoding="ascii")
        return properties

    def _java(self, *arguments: str) -> list[str]:
        java, classpath = find_java(self._environ), jars("broker", environ=self._environ)
        return [
            str(java.command),
            *("-Xmx512m", "-XX:+UseSerialGC", *archive_options(java, classpath)),
            *("-cp", os.pathsep.join(map(str, classpath))),
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={self.directory}",
            *arguments,
        ]

    def _format(self, properties: Path) -> None:
        """Write a cluster id into an empty data folder; leave any other as it is."""
        if (self.directory / "data" / "meta.properties").exists():
            return
        quick = "-XX:TieredStopAtLevel=1"  # it ends before the optimizing compiler helps
        tool = self._java(quick, "kafka.tools.StorageTool", "format", "--ignore-formatted")
        done = subprocess.run(
            [*tool, f"--cluster-id={_cluster_id()}", "--config", str(properties)],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            self.log.write_text(done.stdout, encoding="utf-8")
            raise self._server.failed("the data folder could not be formatted")

    def _is_ready(self) -> bool:
        # An open port is not enough: after a kill the port stays open for a moment.
        return accepts(self.port) and _answers(self.bootstrap_servers)


def _cluster_id() -> str:
    """22 characters as Kafka makes them, but no leading dash: it would begin an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))[0] == "-":
        pass
    return text


def _answers(bootstrap_servers: str) -> bool:
    """True once the broker has joined its own cluster: then it accepts topics and records."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False
