"""A lake whose tables lie in a catalog, and drivers that reach Spark through Connect."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from tests.connect.server import ConnectServer
from tests.lake import Lake
from tests.processes import Started, started

SCHEMAS = ("bronze", "silver", "gold", "sums", "first", "rivermouth")


@dataclass
class ConnectLake(Lake):
    """Each schema of ``spark_catalog`` lies where the same configuration with a folder for its
    warehouse has it: so ``verify`` proves the tables from their files.
    """

    server: ConnectServer
    platform: str

    @property
    def catalog_file(self) -> Path:
        """The configuration that drivers get; ``file`` is the one with the folder."""
        return self.folder / "catalog.yml"

    @property
    def volumes(self) -> Path:
        return self.folder / "volumes"

    @property
    def environ(self) -> dict[str, str]:
        """What a driver's process gets: this one's, with folders of the lake's own."""
        folders = {"RIVERMOUTH_SCRATCH": self.scratch, "RIVERMOUTH_VOLUMES": self.volumes}
        return {**os.environ, **{name: str(path) for name, path in folders.items()}}

    def describe(self, **pipelines: Mapping[str, Any]) -> None:
        """Write both configurations and create the schemas, anew."""
        config = self.configure(**pipelines)
        names = {"catalog": "spark_catalog", "schema": "rivermouth", "volume": "state"}
        text = json.loads(config.path.read_text(encoding="utf-8"))
        self.catalog_file.write_text(json.dumps({**text, "warehouse": names}), encoding="utf-8")
        with self.session() as session:
            for schema in SCHEMAS:
                session.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                session.sql(f"CREATE SCHEMA {schema} LOCATION '{self.warehouse / schema}'")

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session of this process, ended again: a client outlives no server quietly.

        Of the Connect class itself: the common builder would switch this process, and the
        drivers of later tests, to Connect for good, by a variable of the environment.
        """
        session = SparkSession.builder.remote(self.server.url).create()
        try:
            yield session
        finally:
            session.stop()

    def connected(self, *names: str, failpoints: str = "") -> Started:
        """A driver process of its own that ends where the topics end."""
        module = ["-m", "tests.connect.driver", self.server.url, self.platform]
        return started(
            [sys.executable, *module, str(self.catalog_file), *names],
            {**self.environ, "RIVERMOUTH_FAILPOINTS": failpoints},
        )
