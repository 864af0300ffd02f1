"""Many pipelines of one configuration, their broker, and the process that runs them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.testing import Record
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline
from tests.processes import end_group
from tests.waiting import wait_for

TRIGGER = "30s"
RECORDS_A_TURN = 20
EVERY_S = 1.0


class Fleet:
    """``number`` pipelines; each fourth is an upsert."""

    def __init__(self, folder: Path, broker: Broker, number: int) -> None:
        self.lake = Lake(folder, broker.bootstrap_servers)
        self.broker = broker
        self.names = [f"p{each:02d}" for each in range(number)]
        self.partitions = dict.fromkeys(self.names, 2)
        self.log = folder / "driver.log"
        self._driver: subprocess.Popen[bytes] | None = None
        for each in self.names:
            self.lake.topic(each, 2)
        self._configure()

    def _configure(self) -> None:
        pipelines = {
            each: upsert_pipeline(each) if number % 4 == 3 else append_pipeline(each)
            for number, each in enumerate(self.names)
        }
        self.lake.configure(**pipelines)
        text = json.loads(self.lake.file.read_text("utf-8"))
        self.lake.file.write_text(json.dumps({**text, "trigger": TRIGGER}), encoding="utf-8")

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
        self.partitions[name] += 1
        admin = AdminClient({"bootstrap.servers": self.lake.servers})
        asked = admin.create_partitions([NewPartitions(name, self.partitions[name])])
        asked[name].result(60)

    def restore(self, name: str) -> None:
        """Wind the table back by two commits, wait until the run halts, and accept it."""
        table = DeltaTable(str(self.table(name)))
        table.restore(table.version() - 2)
        wait_for(lambda: "RM411" in self._said(), f"{name} did not halt")
        self.stop()
        code, _ = self.run_command("resume", name, "--accept", "restore")
        assert code == 0, f"resume of {name}: exit code {code}, see {self.log}"
        self.start()

    def table(self, name: str) -> Path:
        schema = "silver" if self.upserts(name) else "bronze"
        return self.lake.path(f"{schema}.{name}")

    def _said(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def _command(self, verb: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "rivermouth", verb, str(self.lake.file), *words]

    def _environ(self) -> Mapping[str, str]:
        return {**os.environ, "RIVERMOUTH_SCRATCH": str(self.lake.scratch), "COLUMNS": "200"}


class Feed:
    """Fills the topics from a thread of its own until the block ends."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.records = 0
        self._fleet = fleet
        self._dice = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._feed)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._over.wait(EVERY_S):
            name = self._dice.choice(self._fleet.names)
            made = [self._record(name) for _ in range(RECORDS_A_TURN * len(self._fleet.names) // 4)]
            # librdkafka waits for a broker that restarts, and repeats no record.
            self.records += self._fleet.lake.produce(name, made)

    def _record(self, name: str) -> Record:
        key = self._dice.randrange(1000)
        value = (
            order(key, "open", self._dice.randrange(3600))
            if self._fleet.upserts(name)
            else bid(key)
        )
        return (b"%d" % key, b"{bad" if self._dice.random() < 0.01 else value, key % 2)
