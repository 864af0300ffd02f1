"""Many pipelines of one configuration, their broker, and the process that runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rivermouth.config import TableName
from rivermouth.local.broker import Broker
from rivermouth.verification.tables.lake import LakeCommits
from tests.faults.soak.judging import (
    TORN,
    UNDONE,
    Failure,
    asked_for,
    failures,
    unexpected,
    wound_back,
)
from tests.folders import lake_in
from tests.lake import Lake, append_pipeline, upsert_pipeline
from tests.processes import end_group
from tests.waiting import add_partition, wait_for

TRIGGER = "30s"
HALTED = 5
"""The exit code of a driver some of whose pipelines failed, and others did not."""


class Fleet:
    """``number`` pipelines; each fourth is an upsert.

    ``partitions`` are those that Kafka has confirmed. ``given_up``: what stopped and should not.
    """

    def __init__(self, folder: Path, broker: Broker, number: int) -> None:
        self.lake = Lake(folder, broker.bootstrap_servers, settings={"trigger": TRIGGER})
        self.broker = broker
        self.names = [f"p{each:02d}" for each in range(number)]
        self.partitions = dict.fromkeys(self.names, 2)
        self.log = folder / "driver.log"
        self.given_up: list[str] = []
        self._heard = 0
        self._driver: subprocess.Popen[bytes] | None = None
        for each in self.names:
            self.lake.topic(each, 2)
        self.lake.configure(
            **{
                each: upsert_pipeline(each) if self.upserts(each) else append_pipeline(each)
                for each in self.names
            }
        )

    def upserts(self, name: str) -> bool:
        return self.names.index(name) % 4 == 3

    def group(self) -> int:
        """The process group of the driver that runs; 0 while there is none."""
        return self._driver.pid if self._driver is not None else 0

    def start(self) -> None:
        """Start the command that users start."""
        with self.log.open("ab") as log:
            self._driver = subprocess.Popen(
                self._command("run", "--continuous"),
                env=self._environ(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL of the driver and its JVM."""
        assert self._driver is not None
        end_group(self._driver.pid)
        self._driver.wait()
        self._driver = None

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self._driver is not None
        self._driver.send_signal(signal.SIGTERM)
        code = self._driver.wait(timeout=600)
        end_group(self._driver.pid)
        self._driver = None
        return code

    def ran_away(self) -> bool:
        """Whether the driver ended by itself."""
        return self._driver is not None and self._driver.poll() is not None

    def run_command(self, *words: str) -> tuple[int, Any]:
        """The exit code of a command and its JSON."""
        command = [*self._command(*words), "--json"]
        done = subprocess.run(command, env=self._environ(), capture_output=True, check=False)
        with self.log.open("ab") as log:
            log.write(done.stderr)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def add_partition(self, name: str) -> None:
        """Add one, and wait until Kafka tells producers of it."""
        self.partitions[name] = add_partition(self.lake.servers, name)

    def restore(self, name: str) -> None:
        """Roll back two entries of a table, wait until the run halts, and do what it asks for."""
        self.listen()
        log = LakeCommits(lake_in(self.lake.warehouse), self.named(name))
        wait_for(lambda: wound_back(log, name) is not None, f"{name} has too few entries")
        target = wound_back(log, name)
        assert target is not None
        DeltaTable(str(self.table(name))).restore(target)
        wait_for(lambda: name in dict(failures(self._said())), f"{name} did not halt")
        said = self._said()
        halt = name, dict(failures(said))[name]
        if halt[1] == TORN:  # the RESTORE came into a batch
            asked = asked_for(said, name)
            assert asked is not None, f"{name} asks for no RESTORE, see {self.log}"
            DeltaTable(str(self.table(name))).restore(asked)
        code = self.stop()
        if code != HALTED:
            self.given_up.append(f"after the halt of {name} the driver ended with exit code {code}")
        self.listen(*([halt] if halt[1] in (UNDONE, TORN) else []))
        code, _ = self.run_command("resume", name, "--accept", "restore")
        if code != 0:
            self.given_up.append(f"resume of {name}: exit code {code}, see {self.log}")
        self.start()

    def listen(self, *expected: Failure) -> None:
        """Note which pipelines gave up since this was last asked, but for the expected ones."""
        said = self._said()
        self._heard += len(said)
        self.given_up += unexpected(said, *expected)

    def table(self, name: str) -> Path:
        return self.lake.path(str(self.named(name)))

    def named(self, name: str) -> TableName:
        return TableName("silver" if self.upserts(name) else "bronze", name)

    def _said(self) -> str:
        """What the driver said since it was last listened to."""
        whole = self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""
        return whole[self._heard :]

    def _command(self, verb: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "rivermouth", verb, str(self.lake.file), *words]

    def _environ(self) -> Mapping[str, str]:
        return {**os.environ, "RIVERMOUTH_SCRATCH": str(self.lake.scratch), "COLUMNS": "200"}
