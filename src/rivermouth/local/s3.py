"""A real object store on this machine that speaks S3: s3proxy over a folder, in its own JVM.

It is for tests and first steps. A conditional put is exact there: of several that create one
object, one succeeds. It ends with the process that started it, even if that process is killed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java, java_environ
from rivermouth.local.server import HOST, Server, Serving, accepts, free_port

BUCKET = "lake"
"""The bucket that is there at once."""
KEY, SECRET = "rivermouth", "rivermouth-secret"
"""The credentials that it takes."""


class LocalS3(Serving):
    """``with LocalS3() as store:`` starts one and stops it at the end of the block.

    Without ``directory`` its objects are in a temporary folder that ``close`` deletes; without
    ``port`` a free port is chosen. After ``stop`` it may be started again with what it holds.
    """

    address = f"s3://{BUCKET}"
    """What the address of a warehouse begins with."""

    def __init__(
        self,
        directory: Path | None = None,
        port: int | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.port = port or free_port()
        self._kept = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="rivermouth-store-"))
        self._environ = java_environ(environ)
        where, remove = f"{HOST}:{self.port}", None if self._kept else self.directory
        self._server = Server("store", where, self.directory / "store.log", remove)

    @property
    def objects(self) -> Path:
        """The folder of its buckets, where each object is a file."""
        return self.directory / "objects"

    @property
    def endpoint(self) -> str:
        """``storage.endpoint`` of a configuration."""
        return f"http://{HOST}:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """``storage`` of a configuration."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": KEY,
            "secret_access_key": SECRET,
        }

    def start(self, *, timeout_seconds: float = 120.0) -> None:
        """Start it and return when it answers requests. Does nothing while it runs.

        Raises SetupError if it does not answer in time or its port is taken.
        """
        if not self._server.must_start(self.port, self._is_ready):
            return
        (self.objects / BUCKET).mkdir(parents=True, exist_ok=True)
        self._server.start(self._command(), self._environ, self._is_ready, timeout_seconds)

    def _command(self) -> list[str]:
        """What serves ``objects``."""
        settings = self.directory / "store.properties"
        settings.write_text(_settings(self.endpoint, self.objects), encoding="utf-8")
        log = self.directory / "logback.xml"
        log.write_text(_LOG, encoding="utf-8")
        return [
            str(find_java(self._environ).command),
            *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Djava.io.tmpdir={self.directory}",
            f"-Dlogback.configurationFile={log}",
            *("-cp", os.pathsep.join(map(str, jars("store", environ=self._environ)))),
            *("org.gaul.s3proxy.Main", "--properties", str(settings)),
        ]

    def close(self) -> None:
        """Stop, and delete the objects unless they are in a given folder."""
        self.stop()
        if not self._kept:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _is_ready(self) -> bool:
        return accepts(self.port)


_LOG = """<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"""
"""Without it each request writes a hundred lines."""


def _settings(endpoint: str, objects: Path) -> str:
    settings = {
        "s3proxy.endpoint": endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(objects),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
