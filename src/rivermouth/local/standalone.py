"""A real Spark cluster on this machine, in standalone mode: one master and some workers.

It is for tests and first steps. It ends with the process that started it, even if that process is
killed; executors end with their worker.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from rivermouth.errors import MissingPackage
from rivermouth.local.java import find_java, java_environ
from rivermouth.local.server import HOST, Server, Serving, accepts, alive, free_port

_DEPLOY = "org.apache.spark.deploy"
_BRIEF = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class LocalCluster(Serving):
    """``with LocalCluster() as cluster:`` starts one and stops it at the end of the block.

    Each worker has ``cores`` and gives executors ``memory``. Its executors run the ``python3`` of
    ``environ``, in folders below a temporary one that ``close`` deletes.
    """

    def __init__(
        self,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="rivermouth-cluster-"))
        self._home = _spark_home()
        self._environ = {
            **java_environ(environ),
            "SPARK_HOME": str(self._home),
            "SPARK_SCALA_VERSION": "2.13",  # else it looks for the folders of a build
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.directory),
        }
        self._given = ("--cores", str(cores), "--memory", memory)
        where, log = f"{HOST}:{self.port}", self.directory / "master.log"
        self._server = Server("master of Spark", where, log, self.directory)
        self.workers = [
            Server("worker of Spark", where, self.directory / f"worker-{number}.log", None)
            for number in range(workers)
        ]

    @property
    def master(self) -> str:
        """``spark.master`` of a configuration."""
        return f"spark://{HOST}:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """``spark`` of a configuration: a driver on this machine, executors of one core."""
        return {
            "spark.master": self.master,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
        }

    def start(self, *, timeout_seconds: float = 120.0) -> None:
        """Start what does not run, and return when all workers are registered.

        Raises SetupError if one does not answer in time.
        """
        if self._server.must_start(self.port, self._accepts):
            # The server that takes applications by REST would listen on a port that is not free.
            rest = "-Dspark.master.rest.enabled=false"
            said = ("--host", HOST, "--port", str(self.port), "--webui-port", "0")
            command = self._command(rest, "master.Master", *said)
            self._server.start(command, self._environ, self._accepts, timeout_seconds)
        for number in range(len(self.workers)):
            self.start_worker(number, timeout_seconds=timeout_seconds)

    def start_worker(self, number: int, *, timeout_seconds: float = 120.0) -> None:
        """Start a worker if it does not run, and return when it is registered."""
        worker, folder = self.workers[number], self.directory / f"worker-{number}"
        if worker.pid and alive(worker.pid):
            return
        worker.stop()
        host = _host(number)
        said = ("--host", host, "--webui-port", "0", "--work-dir", str(folder), *self._given)
        command = self._command("", "worker.Worker", *said, self.master)

        def registered() -> bool:
            return "Successfully registered with master" in worker.log.read_text("utf-8")

        worker.log.unlink(missing_ok=True)
        environ = {**self._environ, "SPARK_LOCAL_IP": host}
        worker.start(command, environ, registered, timeout_seconds)

    def close(self) -> None:
        """Stop all of it, and delete the folder."""
        for each in self.workers:
            each.stop()
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _command(self, option: str, what: str, *said: str) -> list[str]:
        java, jars = str(find_java(self._environ).command), str(self._home / "jars" / "*")
        options = filter(None, (*_BRIEF, option))
        return [java, *options, "-cp", jars, f"{_DEPLOY}.{what}", *said]

    def _accepts(self) -> bool:
        return accepts(self.port)


def _host(number: int) -> str:
    """An address of a worker's own, so that Spark takes each for another machine."""
    return f"127.0.0.{number + 1}" if sys.platform == "linux" else HOST


def _spark_home() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise MissingPackage("this needs Spark, and pyspark is not installed")
    return Path(found.origin).parent
