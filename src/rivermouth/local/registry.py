"""A real schema registry on this machine: Apicurio Registry, in its own JVM, in memory.

It is for tests and first steps. It answers by the API of Confluent's registry. It ends with the
process that started it, even if that process is killed, and its schemas with it.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java, java_environ
from rivermouth.local.scratch import cache_folder, writing
from rivermouth.local.server import HOST, Server, Serving, accepts, free_port


class LocalRegistry(Serving):
    """``with LocalRegistry() as registry:`` starts one and stops it at the end of the block.

    Without ``port`` a free port is chosen. After ``stop`` it may be started again, and is empty.
    """

    def __init__(self, port: int | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self.port = port or free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="rivermouth-registry-"))
        self._environ = java_environ(environ)
        where = f"{HOST}:{self.port}"
        self._server = Server("registry", where, self.directory / "registry.log", self.directory)

    @property
    def url(self) -> str:
        """``schema_registry.url`` of a configuration."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def start(self, *, timeout_seconds: float = 120.0) -> None:
        """Start it and return when it answers requests. Does nothing while it runs.

        Raises SetupError if it does not answer in time or its port is taken.
        """
        if not self._server.must_start(self.port, self._is_ready):
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [
            str(find_java(self._environ).command),
            *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Djava.io.tmpdir={self.directory}",
            *(f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}"),
            "-Dquarkus.log.level=WARN",
            *("-jar", str(_unpacked(self._environ))),
        ]
        self._server.start(command, self._environ, self._is_ready, timeout_seconds)

    def close(self) -> None:
        """Stop, and delete its files."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _is_ready(self) -> bool:
        if not accepts(self.port):
            return False
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


def _unpacked(environ: Mapping[str, str]) -> Path:
    """The jar to run, with its libraries beside it; unpacked once."""
    (packed,) = jars("registry", environ=environ)
    folder = cache_folder(environ) / "registry" / packed.name.removesuffix(".tar.gz")
    if not folder.exists():
        with writing(folder.parent):
            folder.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
            _unpack(packed, part)
            try:
                part.rename(folder)
            except OSError:  # another process was faster
                shutil.rmtree(part, ignore_errors=True)
    (jar,) = folder.glob("*-runner.jar")
    return jar


def _unpack(packed: Path, folder: Path) -> None:
    """Write its files, which the lock of the jars names by their hash; it has no others."""
    with tarfile.open(packed) as archive:
        for file in archive:
            read = archive.extractfile(file) if file.isfile() else None
            if read is not None:
                to = folder / file.name
                to.parent.mkdir(parents=True, exist_ok=True)
                with to.open("wb") as written:
                    shutil.copyfileobj(read, written)
