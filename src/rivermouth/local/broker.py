"""A real Kafka broker on this machine: one KRaft node in its own JVM.

It is for the demo, the tests and first steps. It listens on the loopback address only and keeps
one copy of the data. It ends with the process that started it, even if that process is killed.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rivermouth.errors import SetupError
from rivermouth.local import supervisor
from rivermouth.local.jars import jars
from rivermouth.local.java import archive_options, find_java, java_environ
from rivermouth.local.scratch import writing

HOST = "127.0.0.1"
# Below the range from which systems take the local ports of outgoing connections, so that a
# port stays free between two starts.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(besides: int = 0) -> int:
    while (port := random.choice(_PORTS)) == besides or not is_free(port):
        pass
    return port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


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


class Broker:
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
        self._supervisor: subprocess.Popen[bytes] | None = None
        self.pid = 0
        """The process id of the JVM; 0 while stopped."""

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
        if self._supervisor is not None and self._is_ready():
            return
        self.stop()  # a killed broker leaves its supervisor
        if not is_free(self.port):
            raise SetupError(
                "the port is taken",
                where=self.bootstrap_servers,
                remedy="Name another port, or none to get any free one",
            )
        with writing(self.directory):
            properties = self._prepare()
        self._format(properties)
        self._launch("kafka.Kafka", str(properties))
        self._await_ready(time.monotonic() + timeout_seconds)

    def stop(self) -> None:
        """End the JVM cleanly and keep its data. Does nothing while stopped."""
        if self._supervisor is not None:
            process, self._supervisor, self.pid = self._supervisor, None, 0
            try:
                process.communicate(b"stop", timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """Stop, and delete the data if it is in a temporary folder."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Broker:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
            raise self._failed("the data folder could not be formatted")

    def _launch(self, *arguments: str) -> None:
        remove = str(self.directory) if self._temporary else ""
        supervised = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid())]
        self._supervisor = subprocess.Popen(
            [*supervised, str(self.log), remove, *self._java(*arguments)],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the owner alone, which then stops the broker
        )
        assert self._supervisor.stdout is not None
        self.pid = int(self._supervisor.stdout.readline() or 0)

    def _await_ready(self, deadline: float) -> None:
        while not self._is_ready():
            if self._supervisor is None or self._supervisor.poll() is not None:
                self.stop()
                raise self._failed("the local broker ended during its start")
            if time.monotonic() > deadline:
                self.stop()
                raise self._failed("the local broker did not answer in time")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        # An open port is not enough: after a kill the port stays open for a moment.
        return _accepts(self.port) and _answers(self.bootstrap_servers)

    def _failed(self, what: str) -> SetupError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        errors = [line for line in lines if "ERROR" in line or "Exception" in line]
        return SetupError(
            what,
            where=self.bootstrap_servers,
            found=(errors or lines)[0].strip(),
            remedy=f"Read {self.log}",
        )


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
