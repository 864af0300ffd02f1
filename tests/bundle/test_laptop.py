"""The scripts of ``jobs/`` as they are, on this machine: what the bundle runs, without one."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.local.demo_records import fill
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

    def start(self, *scripts: str) -> Started:
        """Scripts with their words, one after another in one process and on one JVM."""
        passed = [f"--set=KAFKA_BOOTSTRAP={self.servers}", f"--local={self.folder / 'lake'}"]
        words = shlex.join([f"--config={ROOT / 'config' / 'rivermouth.yml'}", *passed])
        return started(
            [
                sys.executable,
                "-m",
                "tests.bundle.scripts",
                *(f"{each} {words}" for each in scripts),
            ],
            {**os.environ, "RIVERMOUTH_SCRATCH": str(self.folder / "scratch")},
        )

    def say(self, *scripts: str) -> list[tuple[str, int]]:
        """What each script says, and the code it ends with."""
        with self.start(*scripts) as process:
            said = said_by(process)
        assert process.returncode == 0, said
        found = re.findall(r"^(.*?)^[a-z]+[.]py ended with (\d+)$", said, re.DOTALL | re.MULTILINE)
        assert len(found) == len(scripts), said
        return [(text, int(code)) for text, code in found]

    @property
    def bids(self) -> Path:
        return self.folder / "lake" / "streams" / "bids"


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """With a broker of its own: the topics of the bundle have fixed names."""
    with Broker() as running:
        fill(running.bootstrap_servers, bids=BIDS, changes=1_000, aborted=10)
        yield Laptop(tmp_path, running.bootstrap_servers)


@pytest.mark.thorough
def test_every_job_runs_on_a_laptop_as_it_is(laptop: Laptop) -> None:
    with laptop.start("ingest.py --continuous --select=bids") as endless:
        done = BIDS - BAD_BIDS
        wait_for(lambda: endless.poll() is not None or rows_in(laptop.bids) == done)
        assert endless.poll() is None, said_by(endless)
        endless.send_signal(signal.SIGTERM)
        said = said_by(endless)
    assert endless.returncode == 0, said
    assert "ingest.py ended with 0" in said
    ingested, maintained = laptop.say("ingest.py", "maintain.py")
    assert "orders: OK" in ingested[0]
    assert "streams.orders" in maintained[0]
    assert (ingested[1], maintained[1]) == (0, 0)

    DeltaTable(laptop.bids).restore(1)
    accept = "resume.py --select=bids --accept=restore"
    halted, *others = laptop.say("ingest.py --select=bids", accept, "ingest.py", "verify.py")
    assert halted[1] == 3
    assert "RM411" in halted[0]
    assert [code for _, code in others] == [0, 0, 0], others
    assert rows_in(laptop.bids) == BIDS - BAD_BIDS
    assert "0 missing, 0 duplicated" in others[-1][0]
