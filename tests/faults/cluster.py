"""A cluster of Spark's own on this machine: a master, and two workers under two addresses."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from rivermouth.local.java import find_java
from tests.processes import ROOT, started
from tests.waiting import wait_for

HOSTS = ("127.0.0.2", "127.0.0.3")
_URL = re.compile(r"spark://[\d.]+:\d+")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of its master. Each worker has one core, so one executor with one task.

    Spark tries a slow task a second time only at another address.
    """
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java().home),
        "PYTHONPATH": str(ROOT),
    }
    with ExitStack() as stack:
        _start(stack, environ, folder / "master.log", "master.Master", "--host", "127.0.0.1")
        url = _said(folder / "master.log", _URL)
        for host in HOSTS:
            log = folder / f"{host}.log"
            place = ("--host", host, "--work-dir", str(folder / host))
            size = ("--cores", "1", "--memory", "1g")
            _start(stack, environ, log, "worker.Worker", *place, *size, url)
        for host in HOSTS:
            _said(folder / f"{host}.log", re.compile("Successfully registered"))
        yield url


def _start(
    stack: ExitStack, environ: Mapping[str, str], log: Path, name: str, *arguments: str
) -> None:
    program = Path(environ["SPARK_HOME"], "bin", "spark-class")
    ports = ("--port", "0", "--webui-port", "0")
    command = [str(program), f"org.apache.spark.deploy.{name}", *ports, *arguments]
    shell = f'exec "$@" > "{log}" 2>&1'
    stack.enter_context(started(["sh", "-c", shell, "sh", *command], environ, subprocess.STDOUT))


def _said(log: Path, wanted: re.Pattern[str]) -> str:
    """What a log says that is wanted, once it does."""

    def found() -> re.Match[str] | None:
        return wanted.search(log.read_text("utf-8")) if log.exists() else None

    wait_for(lambda: found() is not None, f"{log} never said {wanted.pattern}")
    match = found()
    assert match is not None
    return match[0]
