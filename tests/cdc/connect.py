"""Kafka Connect with Debezium's connector: the changes of a PostgreSQL become records."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java, java_environ
from rivermouth.local.registry import LocalRegistry
from rivermouth.local.server import HOST, Server, accepts, free_port
from tests.cdc.postgres import Postgres

_CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = "io.apicurio.registry.utils.converter.AvroConverter"


class Debezium:
    """A connector that follows some tables of a database; topics are ``<prefix>.<table>``.

    It writes JSON, with ``schemas`` or without; or Avro, with the schemas in a ``registry``, whose
    numbers stand ahead of each value, or in a header (``by_header``). After ``stop`` it may be
    started again, and goes on where it was.
    """

    def __init__(
        self,
        database: Postgres,
        servers: str,
        prefix: str,
        *tables: str,
        schemas: bool = False,
        registry: LocalRegistry | None = None,
        by_header: bool = False,
        **settings: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rivermouth-debezium-"))
        self._rest = free_port()
        log = self.folder / "connect.log"
        self._server = Server("connector", f"port {self._rest}", log, self.folder)
        plugins = self.folder / "plugins" / "converter"
        plugins.mkdir(parents=True)
        for each in () if registry is None else jars("converter"):
            (plugins / each.name).symlink_to(each)
        converter = _json(schemas=schemas) if registry is None else _avro(registry, by_header)
        worker = {
            "bootstrap.servers": servers,
            **{f"{of}.{name}": each for of in ("key", "value") for name, each in converter.items()},
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "1000",
            "listeners": f"http://{HOST}:{self._rest}",
            "plugin.path": str(plugins.parent),
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


def _json(*, schemas: bool) -> Mapping[str, str]:
    return {"converter": _JSON, "converter.schemas.enable": str(schemas).lower()}


def _avro(registry: LocalRegistry, by_header: bool) -> Mapping[str, str]:
    """As Confluent's converter writes: a zero byte, and the number of the schema in four bytes."""
    url = registry.url.replace("/ccompat/v7", "/registry/v2")
    settings = {
        "url": url,
        "auto-register": "true",
        "find-latest": "true",
        "as-confluent": "true",
        "headers.enabled": str(by_header).lower(),
        "use-id": "contentId",
    }
    named = {f"converter.apicurio.registry.{name}": each for name, each in settings.items()}
    return {"converter": _AVRO, **named}
