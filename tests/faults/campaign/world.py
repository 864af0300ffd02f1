"""A world to torture: one broker, two topics, two tables, a producer, and what must hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic
from rivermouth.verify import verify
from tests.faults.campaign.plan import APPENDS, SHOPS, TABLES
from tests.faults.campaign.process import ROOT
from tests.faults.checker.check import check
from tests.faults.checker.cursor import Cursor
from tests.faults.checker.evidence import Evidence, Place, Watched
from tests.faults.checker.kafka import Cluster
from tests.faults.checker.records import meanings
from tests.waiting import wait_for

PASSWORD = "canary-4b1d9e2a77"
"""In every configuration, needed by nobody: it may show up nowhere."""
PARTITIONS = 3
PER_ROUND = {"events": 600, "accounts": 500}
"""How many records are produced for each topic."""
SHOP_TOPICS = tuple(f"shop-{number}" for number in range(2 * 24))
"""All topics of the pattern that there may ever be in a world."""
EVENTS = "id BIGINT, seq BIGINT, body STRING"
ACCOUNTS = "k BIGINT, seq BIGINT, body STRING"


class World:
    """Everything that outlives a driver, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "lake"
        self.scratch = folder / "scratch"
        self.file = folder / "rivermouth.yml"
        self.history = folder / "history.jsonl"
        self.trace = folder / "trace.jsonl"
        self.drivers = folder / "drivers.log"
        self._cursor: Cursor | None = None
        folder.mkdir(parents=True)

    def __enter__(self) -> World:
        self.broker = Broker(self.folder / "kafka").__enter__()
        self.servers = self.broker.bootstrap_servers
        for topic in TABLES:
            create_topic(self.servers, topic, PARTITIONS)
        self.configure()
        self._start_producer()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_producer()
        self.broker.__exit__(None, None, None)

    def _start_producer(self) -> None:
        command = [sys.executable, "-m", "tests.faults.campaign.producer"]
        self._producer = subprocess.Popen(
            [*command, self.servers, str(self.history)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    def _end_producer(self) -> None:
        self._producer.kill()
        self._producer.wait()
        for each in (self._producer.stdin, self._producer.stdout):
            with suppress(OSError):
                if each is not None:
                    each.close()

    def renewed(self, topic: str) -> None:
        """A topic was created again: the history says so, and a producer that knows no other."""
        self._end_producer()
        cluster = Cluster(self.servers)
        # A broker says that it has made a topic a moment before it tells of it.
        wait_for(lambda: topic in cluster.facts([topic]).topics)
        known = cluster.facts([topic]).topics[topic]
        line = {"phase": "recreated", "topic": topic, "topic_id": known}
        with self.history.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._start_producer()

    def configure(self, by_spark: Sequence[str] = (), *, small: bool = False) -> None:
        """Write the configuration; the appends of ``by_spark`` land through Spark.

        ``small``: a batch of the upsert has fewer records than a round brings.
        """
        source = {"format": "json", "max_offsets_per_trigger": 3000}
        often = {"delta.checkpointInterval": "20"}
        upsert = {"mode": "upsert", "keys": ["k"], "order_by": ["seq"]}
        several = {**source, "max_offsets_per_trigger": 400}  # a way may change between them
        changes = {**source, "max_offsets_per_trigger": 150 if small else 3000}
        commit = {each: "spark" if each in by_spark else "auto" for each in APPENDS}
        config = {
            "version": 1,
            "kafka": {"bootstrap.servers": self.servers, "ssl.key.password": PASSWORD},
            "warehouse": "./lake",
            "pipelines": {
                "events": {
                    "source": {"topics": ["events"], **several},
                    "schema": EVENTS,
                    "target": {
                        "table": "bronze.events",
                        "properties": often,
                        "commit": commit["events"],
                    },
                },
                "accounts": {
                    "source": {"topics": ["accounts"], "key": "string", **changes},
                    "schema": ACCOUNTS,
                    "target": {"table": "silver.accounts", "properties": often, **upsert},
                },
                SHOPS: {
                    "source": {"topics": {"pattern": "shop-[0-9]+"}, **source},
                    "schema": EVENTS,
                    "target": {
                        "table": "bronze.shops",
                        "properties": often,
                        "commit": commit[SHOPS],
                    },
                },
            },
        }
        self.file.write_text(json.dumps(config), encoding="utf-8")

    def table(self, name: str) -> Path:
        """The folder of a pipeline's table."""
        return self.warehouse / ("silver" if name == "accounts" else "bronze") / name

    def quarantine(self, name: str) -> Path:
        """The folder of its quarantine table."""
        table = self.table(name)
        return table.with_name(f"{table.name}_quarantine")

    def written(self, name: str) -> set[Path]:
        """Every commit and data file of a pipeline's table and its quarantine."""
        folders = (self.table(name), self.quarantine(name))
        files = (file for folder in folders for file in folder.rglob("*"))
        return {file for file in files if file.suffix in (".json", ".parquet")}

    def checked(self, place: Place) -> int:
        """Up to which offset of a partition the checker has read and remembers."""
        tables = self._cursor.tables if self._cursor else ()
        read = (meanings(each.topics.records, place)[:1] for each in tables)
        return max((each.until for [each] in filter(None, read)), default=0)

    @property
    def offsets(self) -> Path:
        return self.warehouse / "rivermouth" / "offsets"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 2})

    def produce(self, seed: int, events: int, accounts: int) -> None:
        """Have records produced; returns when they are in Kafka."""
        self._order(seed=seed, events=events, accounts=accounts)

    def fill_shops(self, seed: int, topics: Sequence[str]) -> None:
        """The same into each of these topics of the pattern."""
        self._order(seed=seed, events=0, accounts=0, shops=[*topics])

    def _order(self, **order: object) -> None:
        assert self._producer.stdin
        assert self._producer.stdout
        self._producer.stdin.write(json.dumps(order).encode() + b"\n")
        self._producer.stdin.flush()
        if self._producer.stdout.readline() != b"done\n":
            raise RuntimeError("the producer died")

    def judge(self, *, whole: bool = False, proof: bool = False) -> tuple[int, list[str]]:
        """Records read again, and what is wrong. Drivers have come to their end.

        ``whole``: nothing is remembered, so that what Kafka has deleted cannot be compared.
        ``proof``: ``verify`` is asked as well, as it always is for the whole.
        """
        watched = (
            self._of_events("events", "events"),
            self._of_events(SHOPS, *SHOP_TOPICS),
            Watched(
                name="accounts",
                topics=("accounts",),
                table=self.table("accounts"),
                quarantine=self.quarantine("accounts"),
                columns=(("k", "BIGINT"), ("seq", "BIGINT"), ("body", "STRING")),
                keys=("k",),
                order_by=("seq",),
                key_format="string",
            ),
        )
        evidence = Evidence(
            servers=self.servers,
            warehouse=self.warehouse,
            pipelines=watched,
            history=self.history,
            texts=(self.scratch, self.drivers, self.trace),
            secrets=(PASSWORD,),
        )
        verdict = check(evidence, None if whole else self._cursor)
        self._cursor = verdict.cursor
        wrong = [str(each) for each in verdict.findings]
        if whole or proof:
            proofs = verify(load(self.file)).pipelines
            wrong += [f"verify {each.name}: {line}" for each in proofs for line in each.problems]
        return verdict.records, wrong

    def _of_events(self, name: str, *topics: str) -> Watched:
        return Watched(
            name=name,
            topics=topics,
            table=self.table(name),
            quarantine=self.quarantine(name),
            columns=(("id", "BIGINT"), ("seq", "BIGINT"), ("body", "STRING")),
        )

    def remove(self) -> None:
        """Delete everything; a world that went wrong is kept instead."""
        shutil.rmtree(self.folder, ignore_errors=True)
