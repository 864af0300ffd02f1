"""A Spark Connect server in its own JVM: what a cluster in standard access mode looks like."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pyspark

from rivermouth.local import supervisor
from rivermouth.local.jars import jars
from rivermouth.local.java import archive_file, find_java
from rivermouth.local.server import HOST, free_port, is_free
from rivermouth.local.session import BRIEF, DELTA, session_settings

_PATIENCE_S = 120.0


class ConnectServer:
    """Answers at ``url``; its tables lie in ``folder``. Ends when its owner ends, however.

    ``settings`` go over its own.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = dict(settings or {})
        self._port = free_port()
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self._port}"

    @property
    def log(self) -> Path:
        return self._folder / "connect.log"

    def table(self, schema: str, name: str) -> Path:
        """The folder of a table ``spark_catalog.schema.name``."""
        return self._folder / "warehouse" / f"{schema}.db" / name

    def __enter__(self) -> ConnectServer:
        self._folder.mkdir(parents=True, exist_ok=True)
        keeper = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid())]
        self._keeper = subprocess.Popen(
            [*keeper, str(self.log), "", *self._command()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._folder,
            # What decodes runs in Python on the server's side, where rivermouth is installed, too.
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,  # what ends its owner must not end it before the server
        )
        deadline = time.monotonic() + _PATIENCE_S
        while is_free(self._port):
            if time.monotonic() > deadline or self._keeper.poll() is not None:
                self._stop()
                raise AssertionError(f"no Connect server: {self.log.read_text()[-2000:]}")
            time.sleep(0.03)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._keeper is not None:
            self._keeper.communicate(b"stop", timeout=30)

    def _command(self) -> list[str]:
        java, ours = find_java(), jars("spark")
        home = Path(pyspark.__file__).parent
        # In the order of a driver's JVM, whose class archive is of use only then.
        classpath = [*map(str, ours), str(home / "conf"), str(home / "jars" / "*")]
        archive = archive_file(java, ours)
        shared = [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive.exists() else []
        settings = {**_settings(self._folder, self._port), **self._settings}
        opened = (f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED)
        return [
            str(java.command),
            *("-Xmx2g", "-Duser.timezone=UTC", *BRIEF.split(), *shared, *opened),
            *("-cp", os.pathsep.join(classpath)),
            *(f"-D{name}={value}" for name, value in settings.items()),
            "org.apache.spark.sql.connect.service.SparkConnectServer",
        ]


def _settings(folder: Path, port: int) -> Mapping[str, str]:
    cores = os.cpu_count() or 2
    return {
        **session_settings(cores, folder / "local"),
        **DELTA,
        "spark.master": f"local[{cores}]",
        "spark.app.name": "connect",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
    }


_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
