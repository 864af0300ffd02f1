"""The upkeep of the offsets table by a run: how often, and that it fails nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from rivermouth.config import Pipeline, load
from rivermouth.config.platforms import SERVERLESS
from rivermouth.run.assembly import Assembly
from rivermouth.run.ingest import Ingest
from rivermouth.run.projecting import EVERY, OffsetsUpkeep, Projecting
from rivermouth.run.report import Listener, Silent
from rivermouth.run.run import Run
from rivermouth.warehouse.ports import LedgerStore
from tests.builders import place
from tests.doubles import NO_SESSION, Crash, World, edges
from tests.memory import MemoryLog, MemoryOffsets, MemoryTable

pytestmark = pytest.mark.unit

TWO_DAYS = """
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: lake
offsets_retention: 2d
pipelines:
  a: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.a}, ledger: first}
  b: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.b}}
"""


@dataclass
class Noting(MemoryOffsets):
    """Notes what is asked of it; ``fails`` names what it cannot do."""

    at: int = 0
    fails: str = ""
    did: list[str] = field(default_factory=list)

    def version(self) -> int:
        self._fail("version")
        return self.at

    def compact(self) -> None:
        self._fail("compact")
        self.did.append(f"compact {self.at}")

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        self._fail("forget")
        self.did.append(" ".join(["forget", str(before_ms), *pipelines]))

    def _fail(self, what: str) -> None:
        if self.fails == what:
            raise OSError(what)


@pytest.mark.parametrize(
    ("versions", "done"),
    [
        (range(1, 31), ["compact 10", "compact 20", "compact 30"]),
        ([9, 12, 13, 25], ["compact 12", "compact 25"]),
        ([10], ["compact 10"]),
        ([11, 12], []),
        ([19, 3, 4], []),
    ],
    ids=["each version", "others write too", "a short run", "between", "made anew"],
)
def test_it_is_made_compact_every_so_many_commits_whoever_makes_them(
    versions: range | list[int], done: list[str]
) -> None:
    offsets = Noting()
    upkeep = OffsetsUpkeep(offsets, every=10)
    for offsets.at in versions:
        upkeep()
    assert offsets.did == done


def test_rows_that_are_too_old_are_deleted_before() -> None:
    offsets = Noting(at=10)
    OffsetsUpkeep(offsets, ["a", "b"], timedelta(days=2), 10, lambda: 3 * 86400.0)()
    assert offsets.did == ["forget 86400000 a b", "compact 10"]


@pytest.mark.parametrize(
    ("fails", "done"), [("version", []), ("forget", ["compact 10"]), ("compact", ["forget 0"])]
)
def test_what_fails_stops_nobody(fails: str, done: list[str]) -> None:
    offsets = Noting(at=10, fails=fails)
    OffsetsUpkeep(offsets, [], timedelta(days=1), 10, lambda: 86400.0)()
    assert offsets.did == done


@dataclass
class InMemory:
    """A warehouse as far as a run that opens a pipeline looks at it."""

    offsets: MemoryOffsets
    lake = None

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        return LedgerStore(MemoryLog(MemoryTable()), self.offsets)

    def hold(self, table: object) -> nullcontext[None]:
        return nullcontext()


def opened_only(
    shared: Assembly,
    pipeline: Pipeline,
    listener: Listener,
    held: ExitStack,
    projecting: Projecting,
    stop: threading.Event,
) -> Ingest:
    """A pipeline in memory whose opening commits an entry; then the run is to end."""
    del held
    stop.set()
    world = World(ends={place(): 5})
    return Ingest(edges(world, Crash(), listener, shared.offsets(), projecting, pipeline))


def test_a_run_keeps_rows_of_the_configured_pipelines_for_as_long_as_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = Noting(at=EVERY)
    file = tmp_path / "lake.yml"
    file.write_text(TWO_DAYS, encoding="utf-8")
    monkeypatch.setattr("rivermouth.run.assembly.warehouse_of", lambda *_: InMemory(offsets))
    monkeypatch.setattr(Assembly, "ingest", opened_only)
    run = Run(load(file), NO_SESSION, tmp_path, continuous=False, platform=SERVERLESS)

    [report] = run.pipelines(["a"], Silent(), threading.Event())

    assert report.error is None
    assert [each.entry.pipeline for each in offsets.projected] == ["first"]
    did = [each.split() for each in offsets.did]
    assert [each[0] for each in did] == ["forget", "compact"]
    _, before_ms, *pipelines = did[0]
    assert pipelines == ["first", "b"]
    assert time.time() - int(before_ms) / 1000 == pytest.approx(2 * 86400, abs=600)
