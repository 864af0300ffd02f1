"""Kafka Connect with Debezium's connector: the changes of a PostgreSQL become records."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java, java_environ
from rivermouth.local.server import HOST, Server, accepts, free_port
from tests.cdc.postgres import Postgres

_CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class Debezium:
    """A connector that follows some tables of a database; topics are ``<prefix>.<table>``.

    After ``stop`` it may be started again, and goes on where it was.
    """

    def __init__(
        self,
        database: Postgres,
        servers: str,
        prefix: str,
        *tables: str,
        schemas: bool = False,
        **settings: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rivermouth-debezium-"))
        self._rest = free_port()
        log = self.folder / "connect.log"
        self._server = Server("connector", f"port {self._rest}", log, self.folder)
        enabled = str(schemas).lower()
        worker = {
            "bootstrap.servers": servers,
            "key.converter": _CONVERTER,
            "value.converter": _CONVERTER,
            "key.converter.schemas.enable": enabled,
            "value.converter.schemas.enable": enabled,
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "1000",
            "listeners": f"http://{HOST}:{self._rest}",
            "plugin.path": str(self.folder / "plugins"),
            "plugin.discovery": "only_scan",
        }
        connector = {
            "name": prefix,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "slot.name": prefix.replace("-", "_").replace(".", "_"),
            "publication.name": prefix.replace("-", "_").replace(".", "_"),
            "publication.autocreate.mode": "filtered",
            "database.hostname": HOST,
            "database.port": str(database.port),
            "database.user": "postgres",
            "database.password": "none",
            "database.dbname": "postgres",
            "topic.prefix": prefix,
            "table.include.list": ",".join(f"public.{each}" for each in tables),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self._files = [self._write("worker", worker), self._write("connector", connector)]
        (self.folder / "plugins").mkdir()

    def _write(self, name: str, settings: Mapping[str, str]) -> str:
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(file)

    def start(self) -> None:
        """Start it; it answers soon."""
        classpath = os.pathsep.join(map(str, jars("debezium")))
        command = [str(find_java().command), "-Xmx400m", "-XX:+UseSerialGC"]
        command += ["-XX:TieredStopAtLevel=1", "-cp", classpath, _CLASS, *self._files]
        self._server.start(command, java_environ(os.environ), lambda: accepts(self._rest), 120)

    def stop(self) -> None:
        """End it cleanly."""
        self._server.stop()

    def __enter__(self) -> Debezium:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
