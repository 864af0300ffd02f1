"""A table of PostgreSQL and its changes, a driver that is killed, and the same table in Delta.

``make demo-cdc`` runs it. All parts are real: PostgreSQL, Debezium in Kafka Connect, a broker, and
``rivermouth run --continuous`` as a process, which is killed with all that it started. At the end
source and table are compared row by row and column by column, and ``verify`` is asked.

With ``--drains`` the topic is then read into new tables, in turns as appended events and as rows by
key, and the last line tells the ratio of the records a second.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.local.session import start_session
from rivermouth.run.report import CommitReport, OpenReport, Silent
from rivermouth.run.run import Run
from tests.cdc.connect import Debezium
from tests.cdc.postgres import Postgres
from tests.commands import scratch_in
from tests.faults.seeded import command
from tests.lake import Lake
from tests.processes import end_session
from tests.reading import table_at

TABLE = """CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner TEXT NOT NULL,
 balance NUMERIC(14,2), opened DATE, seen TIMESTAMPTZ, note TEXT)"""
LONG = "ALTER TABLE accounts ALTER note SET STORAGE EXTERNAL"
COLUMNS = "id BIGINT, owner STRING NOT NULL, balance DECIMAL(14,2), opened DATE, seen TIMESTAMP"
COLUMNS += ", note STRING, lsn BIGINT"
TOPIC = "bank.public.accounts"
PIPELINE = {
    "source": {"topics": [TOPIC], "format": "json", "envelope": "debezium"},
    "schema": COLUMNS,
    "columns": {"lsn": {"from": "$.source.lsn"}},
    "target": {"table": "silver.accounts", "mode": "upsert", "keys": ["id"], "order_by": ["lsn"]},
}
APPENDED = {**PIPELINE, "schema": f"{COLUMNS}, _op STRING", "target": {"table": "bronze.accounts"}}
SHOWN = ("id", "owner", "balance", "opened", "note")
SEEN = "%Y-%m-%dT%H:%M:%S"
WAIT_S = 600
TOGETHER = 20
"""The statements of a transaction."""


class Changes:
    """Random statements; keys that are taken are known, so that each changes something."""

    def __init__(self, dice: random.Random, rows: int) -> None:
        self._dice, self._next = dice, rows + 1
        self._keys = [*range(1, rows + 1)]
        self._place = {key: place for place, key in enumerate(self._keys)}
        self._long = {key for key in self._keys if key % 20 == 0}
        self.counts: dict[str, int] = {}

    def first(self) -> str:
        """The rows that are there before anybody looks."""
        return (
            "INSERT INTO accounts SELECT n, 'owner ' || n, n * 1.25, DATE '2020-01-01' + n % 2000,"
            " TIMESTAMPTZ '2026-01-01 00:00:00.000001+00' + n * INTERVAL '1 minute',"
            " CASE WHEN n % 20 = 0 THEN repeat(md5(n::text), 100) END"
            f" FROM generate_series(1, {len(self._keys)}) AS n"
        )

    def __iter__(self) -> Iterator[str]:
        kinds: Sequence[tuple[Callable[[], str], int]] = (
            (self._insert, 30),
            (self._update, 46),
            (self._delete, 15),
            (self._rename, 5),
            (self._note, 4),
        )
        while True:
            [make] = self._dice.choices([each for each, _ in kinds], [each for _, each in kinds])
            name = make.__name__.strip("_")
            self.counts[name] = self.counts.get(name, 0) + 1
            yield make()

    def _any(self, *, long: bool | None = None) -> int:
        while True:
            key: int = self._dice.choice(self._keys)
            if long is None or (key in self._long) == long:
                return key

    def _new(self) -> int:
        self._place[self._next] = len(self._keys)
        self._keys.append(self._next)
        self._next += 1
        return self._next - 1

    def _gone(self, key: int) -> None:
        place, last = self._place.pop(key), self._keys.pop()
        if last != key:
            self._keys[place], self._place[last] = last, place

    def _insert(self) -> str:
        key = self._new()
        return f"INSERT INTO accounts VALUES ({key}, 'new {key}', NULL, NULL, now(), NULL)"

    def _update(self) -> str:
        amount = self._dice.randrange(-(10**9), 10**9) / 100
        return f"UPDATE accounts SET balance = {amount}, seen = now() WHERE id = {self._any()}"

    def _delete(self) -> str:
        key = self._any()
        self._gone(key)
        self._long.discard(key)
        return f"DELETE FROM accounts WHERE id = {key}"

    def _rename(self) -> str:
        """A changed key. One with a long note would lose it: see docs/cdc.md."""
        key = self._any(long=False)
        self._gone(key)
        return f"UPDATE accounts SET id = {self._new()} WHERE id = {key}"

    def _note(self) -> str:
        key = self._any()
        self._long.add(key)
        text = f"repeat(md5('{self._dice.random()}'), {self._dice.randrange(80, 200)})"
        return f"UPDATE accounts SET note = {text} WHERE id = {key}"


class Driver:
    """``rivermouth run --continuous``, which may be killed and started again."""

    def __init__(self, lake: Lake) -> None:
        self._lake, self.kills = lake, 0
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        log = (self._lake.folder / "run.log").open("ab")
        words = [sys.executable, "-m", "rivermouth", "run", str(self._lake.file), "--continuous"]
        environ = {**os.environ, **scratch_in(self._lake.scratch)}
        return subprocess.Popen(words, env=environ, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """It and all that it started die at once; another one starts."""
        end_session(self._process.pid)
        self._process.wait()
        self.kills += 1
        self._process = self._start()

    def end(self) -> None:
        """It comes to its end, or dies with all that it started."""
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        end_session(self._process.pid)
        self._process.wait()


def say(line: str) -> None:
    print(line, flush=True)


def source(database: Postgres) -> pa.Table:
    """The rows of the table in PostgreSQL by their key, as text."""
    seen = "to_char(seen AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US') AS seen"
    return database.table(f"SELECT {', '.join(SHOWN)}, {seen} FROM accounts ORDER BY id")


def target(lake: Lake) -> pa.Table | None:
    """Those of the table in Delta; None: there is no table yet."""
    if not lake.path("silver.accounts").exists():
        return None
    found = table_at(lake.path("silver.accounts")).sort_by("id")
    columns = {each: found[each].cast(pa.string()) for each in SHOWN}
    return pa.table({**columns, "seen": pc.strftime(found["seen"], SEEN)})


def differing(lake: Lake, database: Postgres) -> list[str]:
    """The rows that only one of both has."""
    tables = [each for each in (source(database), target(lake)) if each is not None]
    rows = [{tuple(row.values()) for row in each.to_pylist()} for each in tables]
    return [str(each)[:300] for each in rows[0].symmetric_difference(*rows[1:])]


def play(folder: Path, asked: argparse.Namespace) -> tuple[Mapping[str, Any], Sequence[str]]:
    """The demo; what differs at the end is a violation."""
    dice = random.Random(asked.seed)
    changes = Changes(dice, asked.rows)
    with Broker(folder / "kafka") as broker, Postgres() as database:
        lake = Lake(folder, broker.bootstrap_servers)
        lake.topic(TOPIC, 3)
        lake.configure(accounts=PIPELINE)
        database.run(TABLE, LONG, changes.first())
        say(f"a table of {asked.rows:,} rows in PostgreSQL; Debezium and rivermouth follow it")
        with Debezium(database, lake.servers, "bank", "accounts"):
            facts, wrong = _followed(lake, database, changes, asked, dice)
        return {**facts, **drained(lake, asked.drains)}, wrong


def _followed(
    lake: Lake,
    database: Postgres,
    changes: Changes,
    asked: argparse.Namespace,
    dice: random.Random,
) -> tuple[Mapping[str, Any], Sequence[str]]:
    driver, began = Driver(lake), time.monotonic()
    wait_s = WAIT_S + (asked.rows + asked.changes) / 1000
    try:
        if not _equal(lake, database, wait_s):
            return {}, ["the first rows did not arrive"]
        arrived = time.monotonic() - began
        say(f"the first rows are there after {arrived:.0f} s; now {asked.changes:,} changes")
        each, began = iter(changes), time.monotonic()
        parts = asked.kills + 1
        for part in range(parts):
            count = (part + 1) * asked.changes // parts - part * asked.changes // parts
            made = islice(each, count)
            writer = threading.Thread(target=database.stream, args=(made, TOGETHER))
            writer.start()
            if part < asked.kills:
                time.sleep(dice.uniform(2, 12))
                driver.kill()
                say(f"the driver was killed, {part + 1} of {asked.kills}")
            writer.join()
        written = time.monotonic()
        say(f"all changes are written after {written - began:.0f} s")
        equal = _equal(lake, database, wait_s)
        after = time.monotonic() - written
        say(f"equal {after:.0f} s after the last change" if equal else "")
    finally:
        driver.end()
    wrong = [] if equal else differing(lake, database)
    proved = lake.command("verify", "--strict")
    wrong += [] if proved.returncode == 0 else [f"verify: {proved.stdout}{proved.stderr}"]
    rows = len(source(database))
    say(f"{rows:,} rows are the same in both, column by column; {proved.stdout.splitlines()[-1]}")
    facts = {"changes": asked.changes, **changes.counts, "kills": driver.kills, "rows": rows}
    seconds = {"first_rows_s": arrived, "changes_s": written - began, "equal_after_s": after}
    return {**facts, **{name: round(each, 1) for name, each in seconds.items()}}, wrong


def _equal(lake: Lake, database: Postgres, wait_s: float) -> bool:
    """Whether both are the same at last."""
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        began, found = time.monotonic(), target(lake)
        if found is not None and found.equals(source(database)):
            return True
        time.sleep(max(1.0, 2 * (time.monotonic() - began)))  # most of the time is left to others
    return False


class _Clock(Silent):
    """How many records were committed in how many seconds since the pipeline was open."""

    def __init__(self) -> None:
        self.records, self.began, self.ended = 0, 0.0, 0.0

    def opened(self, report: OpenReport) -> None:
        self.began = time.monotonic()

    def committed(self, report: CommitReport) -> None:
        self.records += report.applied + report.quarantined
        self.ended = time.monotonic()

    @property
    def rate(self) -> float:
        return self.records / (self.ended - self.began)


def drained(lake: Lake, rounds: int) -> Mapping[str, Any]:
    """The records a second of drains, by append and by key in turns, and the median ratio.

    A first round of both warms up.
    """
    if not rounds:
        return {}
    spark, rates = start_session(lake.scratch), list[tuple[float, float]]()
    for number in range(rounds + 1):
        pair = []
        for name, pipeline in (("append", APPENDED), ("upsert", PIPELINE)):
            clock = _Clock()
            new = Lake(lake.folder / f"{name}-{number}", lake.servers)
            new.folder.mkdir()
            new.configure(accounts=pipeline)
            run = Run(load(new.file), spark, new.scratch, continuous=False)
            run.pipelines(["accounts"], clock, threading.Event())
            pair.append(clock.rate)
            shutil.rmtree(new.folder)
            say(f"drain {number} by {name}: {clock.records:,} records, {clock.rate:,.0f} a second")
        rates.append((pair[0], pair[1]))
    spark.stop()
    append, upsert = (statistics.median(each) for each in zip(*rates[1:], strict=True))
    ratio = statistics.median(each[1] / each[0] for each in rates[1:])
    told = {"append": round(append), "upsert": round(upsert)}
    return {"records_a_second": told, "upsert_ratio": round(ratio, 2)}


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=5_000)
    options.add_argument("--changes", type=int, default=20_000)
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--drains", type=int, default=0)
    sys.exit(command(play, options))
