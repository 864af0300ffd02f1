"""A table that rows land in as files, and the batches of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import RawBatch
from rivermouth.write.landings.files import FilesLanding
from tests.landing import land
from tests.points import passing
from tests.spark.conftest import Bench, RawRow

GOOD: list[RawRow] = [(None, b'{"n": %d}' % n, 0, n) for n in range(4)]
BAD: RawRow = (b"k", b"bad", 0, 4)


def at(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], object]) -> None:
    """Act once, when the landing reaches a point."""
    waiting = [act]

    def reach(name: str) -> None:
        if name == point and waiting:
            waiting.pop()()

    passing(monkeypatch, reach)


@dataclass
class InFolder:
    """A table in the folder of a bench."""

    bench: Bench
    name: str

    @property
    def path(self) -> Path:
        return self.bench.folder / self.name

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.of_folder(self.path)

    @property
    def version(self) -> int:
        return DeltaTable(str(self.path)).version()

    def sql(self, statement: str) -> list[Any]:
        address = self.bench.address(self.name).sql
        return self.bench.spark.sql(statement.format(table=address)).collect()

    def ways(self) -> list[str]:
        """Who made each commit after the first, which created the table."""
        files = sorted((self.path / "_delta_log").glob("*.json"))[1:]
        texts = [each.read_text("utf-8") for each in files]
        return ["spark" if "Apache-Spark" in each else "driver" for each in texts]

    def by_spark(self) -> bool:
        """Whether Spark made the newest commit."""
        return self.ways()[-1] == "spark"


@dataclass
class Table(InFolder):
    """The table ``numbers``, and batches that land in it."""

    pipeline: Pipeline
    files: FilesLanding
    sequence: int = 0

    def land(self, rows: list[RawRow] = GOOD, tasks: int | None = None) -> None:
        """Land a batch, by so many tasks, where that is said."""
        self.sequence += 1
        plan = replace(self.bench.plan(self.sequence, rows, Position()), base=self.version)
        # Not coalesce: the landing's own one, above it, would replace it.
        raw = self.bench.raw(rows) if tasks is None else self.bench.raw(rows).repartition(tasks)
        land(self.files, RawBatch(raw, decoder(self.pipeline)), plan)

    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.sql("SELECT n FROM {table}"))


def made(bench: Bench, commit: str = "auto", **properties: str) -> Table:
    pipeline = Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": "n BIGINT",
            "target": {"table": "bronze.numbers", "commit": commit, "properties": properties},
        }
    )
    site = bench.site(pipeline, "numbers")
    create_target(bench.spark, pipeline, site.address)
    return Table(bench, "numbers", pipeline, FilesLanding(site))
