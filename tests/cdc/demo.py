"""A table of PostgreSQL and its changes, a driver that is killed, and the same table in Delta.

``make demo-cdc`` runs it. All parts are real: PostgreSQL, Debezium in Kafka Connect, a broker, and
``rivermouth run --continuous`` as a process, which is killed with all that it started. At the end
source and table are compared by SQL, row by row and column by column, and ``verify`` is asked.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rivermouth.local.broker import Broker
from tests.cdc.connect import Debezium
from tests.cdc.postgres import Postgres
from tests.commands import scratch_in
from tests.faults.seeded import command
from tests.lake import Lake
from tests.processes import end_session

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
SHOWN = "id, owner, balance, opened, note"
WAIT_S = 600


class Changes:
    """Random statements; keys that are taken are known, so that each changes something."""

    def __init__(self, dice: random.Random, rows: int) -> None:
        self._dice, self._next = dice, rows + 1
        self._keys = [*range(1, rows + 1)]
        self._long = {key for key in self._keys if key % 4 == 0}
        self.counts: dict[str, int] = {}

    def first(self) -> str:
        """The rows that are there before anybody looks."""
        return (
            "INSERT INTO accounts SELECT n, 'owner ' || n, n * 1.25, DATE '2020-01-01' + n % 2000,"
            " TIMESTAMPTZ '2026-01-01 00:00:00.000001+00' + n * INTERVAL '1 minute',"
            " CASE WHEN n % 4 = 0 THEN repeat(md5(n::text), 100) END"
            f" FROM generate_series(1, {len(self._keys)}) AS n"
        )

    def __iter__(self) -> Iterator[str]:
        kinds: Sequence[tuple[Callable[[], str], int]] = (
            (self._insert, 30),
            (self._update, 40),
            (self._delete, 15),
            (self._rename, 5),
            (self._note, 10),
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
        self._keys.append(self._next)
        self._next += 1
        return self._next - 1

    def _insert(self) -> str:
        key = self._new()
        return f"INSERT INTO accounts VALUES ({key}, 'new {key}', NULL, NULL, now(), NULL)"

    def _update(self) -> str:
        amount = self._dice.randrange(-(10**9), 10**9) / 100
        return f"UPDATE accounts SET balance = {amount}, seen = now() WHERE id = {self._any()}"

    def _delete(self) -> str:
        key = self._any()
        self._keys.remove(key)
        self._long.discard(key)
        return f"DELETE FROM accounts WHERE id = {key}"

    def _rename(self) -> str:
        """A changed key. One with a long note would lose it: see docs/cdc.md."""
        key = self._any(long=False)
        self._keys.remove(key)
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


def source(database: Postgres) -> list[tuple[Any, ...]]:
    """The rows of the table in PostgreSQL, as text."""
    seen = "to_char(seen AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
    rows = database.rows(f"SELECT {SHOWN}, {seen} AS seen FROM accounts ORDER BY id")
    return [tuple(each.values()) for each in rows]


def target(lake: Lake) -> list[tuple[Any, ...]]:
    """Those of the table in Delta."""
    if not lake.path("silver.accounts").exists():
        return []
    found = []
    for each in sorted(lake.rows("silver.accounts"), key=lambda row: int(row["id"])):
        plain = (None if each[n] is None else str(each[n]) for n in SHOWN.split(", "))
        seen = each["seen"]
        when = None if seen is None else seen.strftime("%Y-%m-%dT%H:%M:%S.%f")
        found.append((*plain, when))
    return found


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
            return _followed(lake, database, changes, asked, dice)


def _followed(
    lake: Lake,
    database: Postgres,
    changes: Changes,
    asked: argparse.Namespace,
    dice: random.Random,
) -> tuple[Mapping[str, Any], Sequence[str]]:
    driver, began = Driver(lake), time.monotonic()
    try:
        if not _equal(lake, database):
            return {}, ["the first rows did not arrive"]
        arrived = time.monotonic() - began
        say(f"the first rows are there after {arrived:.0f} s; now {asked.changes:,} changes")
        each = iter(changes)
        made = [next(each) for _ in range(asked.changes)]
        parts = asked.kills + 1
        for part in range(parts):
            mine = made[part * len(made) // parts : (part + 1) * len(made) // parts]
            writer = threading.Thread(target=database.run, args=mine)
            writer.start()
            if part < asked.kills:
                time.sleep(dice.uniform(2, 12))
                driver.kill()
                say(f"the driver was killed, {part + 1} of {asked.kills}")
            writer.join()
        written = time.monotonic()
        equal = _equal(lake, database)
        say(f"equal {time.monotonic() - written:.0f} s after the last change" if equal else "")
    finally:
        driver.end()
    wrong = [] if equal else [str(e)[:300] for e in {*source(database)} ^ {*target(lake)}]
    proved = lake.command("verify", "--strict")
    wrong += [] if proved.returncode == 0 else [f"verify: {proved.stdout}{proved.stderr}"]
    rows = len(source(database))
    say(f"{rows:,} rows are the same in both, column by column; {proved.stdout.splitlines()[-1]}")
    facts = {"changes": asked.changes, **changes.counts, "kills": driver.kills, "rows": rows}
    return {**facts, "first_rows_s": round(arrived, 1)}, wrong


def _equal(lake: Lake, database: Postgres) -> bool:
    """Whether both are the same at last."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        if target(lake) == source(database):
            return True
        time.sleep(1)
    return False


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=5_000)
    options.add_argument("--changes", type=int, default=20_000)
    options.add_argument("--kills", type=int, default=3)
    sys.exit(command(play, options))
