"""A real Kafka broker on this machine: one node, KRaft, in a JVM of its own.

For the demo, the tests and a first look; it listens on the loopback address only and keeps one
copy of everything. It ends with the process that started it, even when that one is killed.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rivermouth.errors import SetupError
from rivermouth.local import supervisor
from rivermouth.local.broker_settings import LOGGING, SETTINGS
from rivermouth.local.cache import writing
from rivermouth.local.jars import jars
from rivermouth.local.java import find_java
from rivermouth.local.loopback import HOST, accepts, free_port, is_free

__all__ = ["Broker"]


class Broker:
    """``with Broker() as broker:`` starts one and stops it at the end of the block.

    Without ``directory`` its data lies in a temporary folder and goes with it. With one, the
    data stays and another broker may take it up again. ``port`` is a free one unless named.
    ``settings`` are Kafka's own and go over ours. ``stop`` and ``start`` may be called again
    and again on the same port and data.
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
        self._environ = dict(environ)
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the JVM; 0 while stopped."""
        return self._pid

    @property
    def log(self) -> Path:
        """What the JVM printed: warnings and errors, of all starts."""
        return self.directory / "broker.log"

    def start(self, *, timeout_seconds: float = 60.0) -> None:
        """Return when the broker answers requests. Does nothing while it runs.

        Raises SetupError when it does not come up in time or its port is taken.
        """
        if self._keeper is not None and self._is_ready():
            return
        self.stop()  # what a broker that was killed left behind
        if not is_free(self.port):
            raise SetupError(
                "the port is taken",
                where=self.bootstrap_servers,
                remedy="Name another port, or none to get a free one",
            )
        with writing(self.directory):
            properties = self._prepare()
        self._format(properties)
        self._launch("kafka.Kafka", str(properties))
        self._await_ready(time.monotonic() + timeout_seconds)

    def stop(self) -> None:
        """End the JVM cleanly and keep its data. Does nothing while stopped."""
        if self._keeper is not None:
            keeper, self._keeper, self._pid = self._keeper, None, 0
            try:
                keeper.communicate(b"stop", timeout=30)
            except subprocess.TimeoutExpired:
                keeper.kill()
                keeper.wait()

    def close(self) -> None:
        """Stop, and delete the data if it lay in a temporary folder."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _prepare(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
        controller = f"{HOST}:{self._controller_port}"
        settings = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.directory / "data"),
            **self._settings,
        }
        properties = self.directory / "broker.properties"
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        properties.write_text(text, encoding="utf-8")
        return properties

    def _java(self, *arguments: str) -> list[str]:
        classpath = os.pathsep.join(map(str, jars("broker", environ=self._environ)))
        return [
            str(find_java(self._environ).command),
            *("-Xmx512m", "-XX:+UseSerialGC", "-cp", classpath),
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            *arguments,
        ]

    def _format(self, properties: Path) -> None:
        """Give an empty data folder its cluster id; leave a filled one as it is."""
        if (self.directory / "data" / "meta.properties").exists():
            return
        quick = "-XX:TieredStopAtLevel=1"  # too short a run for the optimizing compiler
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
        keeper = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid())]
        self._keeper = subprocess.Popen(
            [*keeper, str(self.log), remove, *self._java(*arguments)],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the owner, who stops the broker in its turn
        )
        assert self._keeper.stdout is not None
        self._pid = int(self._keeper.stdout.readline() or 0)

    def _await_ready(self, deadline: float) -> None:
        while not self._is_ready():
            if self._keeper is None or self._keeper.poll() is not None:
                self.stop()
                raise self._failed("the local broker ended while it started")
            if time.monotonic() > deadline:
                self.stop()
                raise self._failed("the local broker did not answer in time")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        # An open port is not enough: that of a broker just killed stays open for a moment.
        return accepts(self.port) and _answers(self.bootstrap_servers)

    def _failed(self, what: str) -> SetupError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        telling = [line for line in lines if "ERROR" in line or "Exception" in line]
        return SetupError(
            what,
            where=self.bootstrap_servers,
            found=(telling or lines)[0].strip(),
            remedy=f"Read {self.log}",
        )


def _cluster_id() -> str:
    """22 characters as Kafka makes them; a leading dash would read as an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))[0] == "-":
        pass
    return text


def _answers(bootstrap_servers: str) -> bool:
    """True when the broker has joined its own cluster: from then on it takes topics and data."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False
