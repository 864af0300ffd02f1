"""The demo: a broker, two topics, a driver that is killed at the worst moment, and the proof."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rivermouth.errors import RivermouthError, SetupError
from rivermouth.local.broker import Broker
from rivermouth.local.commands import typed
from rivermouth.local.demo_records import ORDERS, fill
from rivermouth.local.jars import Downloading, jars
from rivermouth.local.s3 import LocalS3
from rivermouth.local.scratch import writing
from rivermouth.local.standalone import LocalCluster

_MARKER = ".rivermouth-demo"
FOLDER = "./lake"

CONFIG = """\
# Two topics, two tables. Type: rivermouth validate, then status, verify, sql, run.
version: 1
kafka:
  bootstrap.servers: {bootstrap_servers}
warehouse: {warehouse}
{more}pipelines:
  bids:                            # append: every record becomes a row
    source: {{topics: [bids], format: json, max_offsets_per_trigger: {bids_per_batch}}}
    schema: >-
      auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
      at TIMESTAMP, extra STRING
    target: {{table: bronze.bids}}
  orders:                          # upsert: one row per order, the newest
    source:                        # a record without value deletes the order of its key
      {{topics: [orders], format: json, key: string, max_offsets_per_trigger: {orders_per_batch}}}
    schema: "order_id BIGINT, status STRING, amount DECIMAL(12,2), updated_at TIMESTAMP"
    target: {{table: silver.orders, mode: upsert, keys: [order_id], order_by: [updated_at]}}
"""


def recreate(folder: Path) -> None:
    """Delete the folder of an earlier demo and create an empty one.

    Raises SetupError, and deletes nothing, if the folder holds anything but a demo.
    """
    with writing(folder):
        if folder.exists():
            _require_demo(folder)
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        (folder / _MARKER).write_text("The demo may delete this folder.\n", "utf-8")


def _require_demo(folder: Path) -> None:
    if not folder.is_dir():
        raise SetupError(
            "there is a file in place of the demo's folder",
            where=str(folder),
            remedy="Name another folder with --dir",
        )
    if any(folder.iterdir()) and not (folder / _MARKER).is_file():
        raise SetupError(
            "the folder holds files that no demo made",
            where=str(folder),
            remedy="Name another folder with --dir, or empty this one",
        )


def configure(
    folder: Path,
    bootstrap_servers: str,
    bids_per_batch: int,
    orders_per_batch: int,
    warehouse: str = FOLDER,
    sections: Mapping[str, Mapping[str, str]] | None = None,
) -> Path:
    """Write the configuration; its file. ``sections`` are further ones."""
    file = folder / "rivermouth.yml"
    lines = list[str]()
    for name, options in (sections or {}).items():
        lines += [f"{name}:\n", *(f"  {key}: {value}\n" for key, value in options.items())]
    text = CONFIG.format(
        warehouse=warehouse,
        more="".join(lines),
        bootstrap_servers=bootstrap_servers,
        bids_per_batch=bids_per_batch,
        orders_per_batch=orders_per_batch,
    )
    file.write_text(text, "utf-8")
    return file


# Each pipeline passes P6 once when it records the partitions and three times with data. At the
# sixth time in all, both have committed data, and two batches remain.
KILL_AT = "P6=6*kill"
STEPS = 8
# In runs as short as these the optimizing compiler costs 40 % of the CPU and saves less.
_BRIEF = "-XX:TieredStopAtLevel=1"

QUERIES = (
    (
        "the highest bids of each channel",
        "SELECT channel, count(*) AS bids, max(price) AS highest FROM bronze.bids "
        "GROUP BY channel ORDER BY highest DESC",
    ),
    (
        "open orders",
        "SELECT status, count(*) AS orders, sum(amount) AS amount FROM silver.orders "
        "WHERE status NOT IN ('delivered', 'returned') GROUP BY status ORDER BY orders DESC",
    ),
    (
        "the newest rows of the offsets table",
        'SELECT pipeline, sequence, partition, from_offset AS "from", until_offset AS "until", '
        "records, quarantined AS bad, table_version AS version FROM rivermouth.offsets "
        "ORDER BY committed_at DESC, partition LIMIT 7",
    ),
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How many records; each topic is read in three batches."""

    bids: int = 300_000
    changes: int = 60_000

    @property
    def aborted(self) -> int:
        """Records of the transaction that is aborted."""
        return self.changes // 150

    @property
    def per_batch(self) -> tuple[int, int]:
        """Offsets of bids and of changes: a tenth more than a third of the records."""
        return self.bids * 11 // 30, self.changes * 11 // 30


class Story:
    """Prints numbered steps with the seconds since the start, and runs their commands."""

    def __init__(
        self,
        folder: Path,
        say: Say,
        sizes: Sizes | None = None,
        *,
        warehouse: str = "",
        store: bool = False,
        cluster: bool = False,
    ) -> None:
        self._folder = folder
        # Of a bucket nobody knows what is there: each demo has a prefix of its own.
        self._warehouse = f"{warehouse.rstrip('/')}/{uuid.uuid4()}" if warehouse else FOLDER
        self._store = LocalS3(folder / "store") if store or cluster else None
        self._cluster = LocalCluster() if cluster else None
        self._config = folder / "rivermouth.yml"
        self._say = say
        self._sizes = sizes or Sizes()
        self._began = time.monotonic()
        self._number = 0

    def tell(self, await_end: Callable[[], None] | None) -> None:
        """Run all steps. The broker runs until ``await_end`` returns; None stops it at once.

        A store and a cluster of the demo's own do so, too. ``warehouse``: an address in another
        one. Prints which step failed and raises its error.
        """
        with self._step("a new folder and a real Kafka broker"):
            recreate(self._folder)
            jars("broker", progress=Downloading(sys.stderr))
            broker = Broker(self._folder / "kafka")
            broker.start()
        try:
            if self._store is not None:
                with self._step("a real object store"):
                    jars("store", progress=Downloading(sys.stderr))
                    self._store.start()
            if self._cluster is not None:
                with self._step("a real Spark cluster of two workers"):
                    self._cluster.start()
            self._ingest(broker)
            self._prove()
            self._leave(broker, running=await_end is not None)
            if await_end is not None:
                await_end()
        finally:
            if self._cluster is not None:
                self._cluster.close()
            if self._store is not None:
                self._store.stop()
            broker.stop()

    def _ingest(self, broker: Broker) -> None:
        with self._step("auction bids and order changes into two topics"):
            sizes, servers = self._sizes, broker.bootstrap_servers
            there, sections = self._warehouse, dict[str, Mapping[str, str]]()
            if self._store is not None:
                there, sections["storage"] = f"{self._store.address}/demo", self._store.options
            if self._cluster is not None:
                sections["spark"] = self._cluster.settings
            configure(self._folder, servers, *sizes.per_batch, there, sections)
            fill(servers, bids=sizes.bids, changes=sizes.changes, aborted=sizes.aborted)
            self._say(f"{sizes.bids:,} bids, {sizes.changes:,} changes of {ORDERS:,} orders,")
            self._say("some of them tombstones, some of them bad, some late;")
            self._say(f"a transaction of {sizes.aborted} more is aborted")
        with self._step("a run is killed between a Delta commit and Spark's own record of it"):
            self._command("run", expect=-signal.SIGKILL, failpoints=KILL_AT)
            self._say("the driver is dead: killed by signal 9, so it could not clean up")
        with self._step("its state: the log of each table says which offsets are in it"):
            self._command("status")
        with self._step("the next run reads that log and continues from there"):
            self._command("run")

    def _prove(self) -> None:
        with self._step("the proof: verify reads Kafka and the tables and compares them"):
            self._command("verify")
        with self._step("the tables answer SQL, without a JVM"):
            for title, statement in QUERIES:
                self._say(f"\n-- {title}")
                self._command("sql", statement)

    def _leave(self, broker: Broker, *, running: bool) -> None:
        with self._step("now try it yourself"):
            config = self._config
            again = typed("broker", "--dir", broker.directory, "--port", broker.port)
            ends = "runs until Ctrl-C" if running else f"has ended; start it again: {again}"
            self._say(f"tables  {self._tables}")
            self._say(f"config  {config}")
            self._say(f"broker  {ends}")
            self._say("\nNext, with the broker up:")
            for words in (("status", config), ("verify", config), ("run", config, "--continuous")):
                self._say(f"  {typed(*words)}")
            if self._store is None:
                self._say("and without it:")
                self._say(f"  {typed('sql', config, 'SELECT * FROM bronze.bids LIMIT 5')}")
            else:
                where = typed("store", "--dir", self._store.directory, "--port", self._store.port)
                self._say(f"store   {ends.partition(';')[0]}; start it again: {where}")

    @property
    def _tables(self) -> str:
        """Where they are."""
        if self._store is not None:
            return f"{self._store.address}/demo, in {self._store.directory}"
        return str(self._folder / "lake") if self._warehouse == FOLDER else self._warehouse

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        """Print the step; also print if it failed."""
        self._number += 1
        elapsed = time.monotonic() - self._began
        steps = STEPS + (self._store is not None) + (self._cluster is not None)
        self._say(f"\n[{self._number}/{steps} {elapsed:3.0f} s] {what}")
        try:
            yield
        except RivermouthError:
            self._say(f"FAILED: step {self._number} of the demo ({what})")
            raise

    def _command(self, name: str, *words: str, expect: int = 0, failpoints: str = "") -> None:
        """Run ``rivermouth NAME CONFIG WORDS`` and require that it ends as expected."""
        line = typed(name, self._config, *words)
        prefix = f"RIVERMOUTH_FAILPOINTS='{failpoints}' " if failpoints else ""
        self._say(f"$ {prefix}{line}")
        java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {_BRIEF}".strip()
        environ = {**os.environ, "RIVERMOUTH_FAILPOINTS": failpoints, "JDK_JAVA_OPTIONS": java}
        arguments = [name, str(self._config), *words]
        done = subprocess.run([sys.executable, "-m", "rivermouth", *arguments], env=environ)
        if done.returncode < 0 and sys.stdout.isatty():
            self._say("\x1b[?25h")  # the killed process did not show the cursor again
        if done.returncode != expect:
            raise RivermouthError(
                f"rivermouth {name} did not end as expected",
                expected=f"exit code {expect}",
                found=f"exit code {done.returncode}",
                remedy="Its output above says why",
            )
