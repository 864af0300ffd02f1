"""The scripts of ``jobs/`` as they are, on this machine: what the bundle runs, without one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.local.demo.filling import fill
from tests.bundle.bundle_files import ROOT
from tests.processes import Started, said_by, started
from tests.waiting import rows_in, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BIDS, BAD_BIDS = 2_000, 2


@dataclass(frozen=True)
class Laptop:
    """The configuration of the bundle, its tables in a folder."""

    folder: Path
    servers: str

    def start(self, script: str, *words: str) -> Started:
        passed = [f"--set=KAFKA_BOOTSTRAP={self.servers}", f"--local={self.folder / 'lake'}"]
        config = f"--config={ROOT / 'config' / 'rivermouth.yml'}"
        return started(
            [sys.executable, str(ROOT / "jobs" / script), config, *passed, *words],
            {**os.environ, "RIVERMOUTH_SCRATCH": str(self.folder / "scratch")},
        )

    def must(self, script: str, *words: str, code: int = 0) -> str:
        """What the script says; it ends with ``code``."""
        with self.start(script, *words) as process:
            said = said_by(process)
        assert process.returncode == code, said
        return said

    @property
    def bids(self) -> Path:
        return self.folder / "lake" / "streams" / "bids"


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """With a broker of its own: the topics of the bundle have fixed names."""
    with Broker() as running:
        fill(running.bootstrap_servers, bids=BIDS, changes=1_000, aborted=10)
        yield Laptop(tmp_path, running.bootstrap_servers)


def test_every_job_runs_on_a_laptop_as_it_is(laptop: Laptop) -> None:
    with laptop.start("ingest.py", "--continuous", "--select=bids") as endless:
        done = BIDS - BAD_BIDS
        wait_for(lambda: endless.poll() is not None or rows_in(laptop.bids) == done)
        assert endless.poll() is None, said_by(endless)
        endless.send_signal(signal.SIGTERM)
        said = said_by(endless)
    assert endless.returncode == 0, said
    assert "orders: OK" in laptop.must("ingest.py")
    assert "streams.orders" in laptop.must("maintain.py")

    DeltaTable(laptop.bids).restore(1)
    assert "RM411" in laptop.must("ingest.py", "--select=bids", code=3)
    laptop.must("resume.py", "--select=bids", "--accept=restore")
    laptop.must("ingest.py")
    assert rows_in(laptop.bids) == BIDS - BAD_BIDS
    assert "0 missing, 0 duplicated" in laptop.must("verify.py")
