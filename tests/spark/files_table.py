"""A table that rows land in as files, and the batches of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.target import create_target
from rivermouth.write.files import commits, quarantine
from rivermouth.write.landing import RawBatch
from rivermouth.write.landings import files
from rivermouth.write.landings.files import Files
from tests.spark.conftest import Bench, RawRow

GOOD: list[RawRow] = [(None, b'{"n": %d}' % n, 0, n) for n in range(4)]
BAD: RawRow = (b"k", b"bad", 0, 4)


def at(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], object]) -> None:
    """Act once, when the landing reaches a point."""
    waiting = [act]

    def reach(name: str) -> None:
        if name == point and waiting:
            waiting.pop()()

    for room in (files, commits, quarantine):
        monkeypatch.setattr(room, "reach", reach)


@dataclass
class Table:
    """The table ``numbers``, and batches that land in it."""

    bench: Bench
    pipeline: Pipeline
    files: Files
    sequence: int = 0

    @property
    def log(self) -> FolderLog:
        return FolderLog(self.bench.folder / "numbers")

    @property
    def version(self) -> int:
        return DeltaTable(str(self.log.path)).version()

    def sql(self, statement: str) -> list[Any]:
        address = self.bench.address("numbers").sql
        return self.bench.spark.sql(statement.format(table=address)).collect()

    def land(self, rows: list[RawRow] = GOOD, tasks: int | None = None) -> None:
        """Land a batch, by so many tasks, where that is said."""
        self.sequence += 1
        plan = replace(self.bench.plan(self.sequence, rows, Position()), base=self.version)
        # Not coalesce: the landing's own one, above it, would replace it.
        raw = self.bench.raw(rows) if tasks is None else self.bench.raw(rows).repartition(tasks)
        self.files.land(RawBatch(raw, decoder(self.pipeline)), plan)

    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.sql("SELECT n FROM {table}"))

    def by_spark(self) -> bool:
        """Whether Spark made the newest commit."""
        newest = max((self.log.path / "_delta_log").glob("*.json"))
        return "Apache-Spark" in newest.read_text("utf-8")


def made(bench: Bench, **properties: str) -> Table:
    pipeline = Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "columns": "n BIGINT",
            "target": {"table": "bronze.numbers", "properties": properties},
        }
    )
    site = bench.site(pipeline, "numbers")
    create_target(bench.spark, pipeline, site.address)
    return Table(bench, pipeline, Files(site))
