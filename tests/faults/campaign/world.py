"""A world to torture: one broker, topics, three pipelines, a producer, and what must hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rivermouth.local.broker import Broker
from tests.faults.campaign.forms import FORMS, JSON, OF_WORLDS
from tests.faults.campaign.producer import Writer
from tests.faults.campaign.stores import Beyond, StoredWorld, stored_world
from tests.faults.checker.check import check
from tests.faults.checker.cursor import Cursor
from tests.faults.checker.evidence import Evidence, Place, Watched
from tests.faults.checker.kafka import Cluster
from tests.faults.checker.records import meanings
from tests.faults.outcomes import problems
from tests.lake import Lake
from tests.waiting import wait_for

PASSWORD = "canary-4b1d9e2a77"
"""In every configuration, needed by nobody: it may show up nowhere."""
PARTITIONS = 3
PER_ROUND = {"events": 600, "accounts": 500}
"""How many records are produced for each topic."""
SHOP_TOPICS = tuple(f"shop-{number}" for number in range(2 * 24))
"""All topics of the pattern that there may ever be in a world."""

TABLES = ("events", "accounts")
SHOPS = "shops"
"""The pipeline whose topics come and go."""
TARGETS = {"events": "bronze.events", "accounts": "silver.accounts", SHOPS: "bronze.shops"}
PIPELINES = (*TARGETS,)
COLUMNS = {
    name: (("k" if name == "accounts" else "id", "BIGINT"), ("seq", "BIGINT"), ("body", "STRING"))
    for name in PIPELINES
}


@dataclass
class World(Lake):
    """Everything that outlives a driver, in one folder."""

    broker: Broker
    forms: Mapping[str, str] = field(default_factory=lambda: OF_WORLDS[0])
    """Of the records of each topic; those of all others are JSON."""
    writer: Writer = field(init=False)
    store: StoredWorld | None = field(default=None, kw_only=True)
    """Where the tables are; None: in the folder."""
    lost: int = field(default=0, kw_only=True)
    """How many processes of the cluster were killed in this round."""
    cursor: Cursor | None = field(default=None, kw_only=True)
    """What the checker remembers."""

    def __post_init__(self) -> None:
        self.history = self.folder / "history.jsonl"
        self.trace = self.folder / "trace.jsonl"
        self.drivers = self.folder / "drivers.log"

    @property
    def warehouse(self) -> Path:
        """What a checker reads: the store keeps each object as a file."""
        return super().warehouse if self.store is None else self.store.folder

    def renewed(self, topic: str) -> None:
        """A topic was created again: the history says so, and a producer that knows no other."""
        cluster = Cluster(self.servers)
        # A broker says that it has made a topic a moment before it tells of it.
        wait_for(lambda: topic in cluster.facts([topic]).topics)
        known = cluster.facts([topic]).topics[topic]
        line = {"phase": "recreated", "topic": topic, "topic_id": known}
        with self.history.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.writer = Writer(self.servers, self.history, self.forms)

    def choose_ways(self, by_spark: Sequence[str] = (), *, small: bool = False) -> None:
        """Write the configuration; what the pipelines of ``by_spark`` read lands through Spark.

        ``small``: a batch of the upsert has fewer records than a round brings.
        """
        # Of the events there are several batches: a way may change between them.
        limits = {"events": 400, "accounts": 150 if small else 3000, SHOPS: 3000}
        self.configure(
            **{name: self._pipeline(name, limit, by_spark) for name, limit in limits.items()}
        )

    def _pipeline(self, name: str, limit: int, by_spark: Sequence[str]) -> dict[str, Any]:
        topics = {"pattern": "shop-[0-9]+"} if name == SHOPS else [name]
        form, columns = self.forms.get(name, JSON), COLUMNS[name]
        its = FORMS[form]
        source = {
            "topics": topics,
            "format": "json",
            "max_offsets_per_trigger": limit,
            **its.source,
        }
        target = {"table": TARGETS[name], "properties": {"delta.checkpointInterval": "20"}}
        target["commit"] = "spark" if name in by_spark else "auto"
        if its.schema is not None:
            suffix, text = its.schema
            file = self.folder / f"{name}.{suffix}"
            file.write_text(text({each: 0 if kind == "BIGINT" else "" for each, kind in columns}))
            source["schema_file"] = file.name
        if name == "accounts":
            target |= {"mode": "upsert", "keys": ["k"], "order_by": ["seq"]}
            if its.delete is None:
                source["key"] = "string"
        schema = ", ".join(f"{each} {kind}" for each, kind in columns)
        said = {"columns": its.columns} if its.columns else {}
        return {"source": source, "schema": schema, **said, "target": target}

    def table(self, name: str) -> Path:
        """The folder of a pipeline's table."""
        return self.path(TARGETS[name])

    def quarantine(self, name: str) -> Path:
        """The folder of its quarantine table."""
        return self.path(f"{TARGETS[name]}_quarantine")

    @property
    def offsets(self) -> Path:
        return self.path("rivermouth.offsets")

    def written(self, name: str) -> set[Path]:
        """Every commit and data file of a pipeline's table and its quarantine."""
        folders = (self.table(name), self.quarantine(name))
        files = (file for folder in folders for file in folder.rglob("*"))
        return {file for file in files if file.suffix in (".json", ".parquet")}

    def checked(self, place: Place) -> int:
        """Up to which offset of a partition the checker has read and remembers."""
        tables = self.cursor.tables if self.cursor else ()
        read = (meanings(each.topics.records, place)[:1] for each in tables)
        return max((each.until for [each] in filter(None, read)), default=0)

    def judge(self, *, whole: bool = False, proof: bool = False) -> tuple[int, list[str]]:
        """Records read again, and what is wrong. Drivers have come to their end.

        ``whole``: nothing is remembered, so that what Kafka has deleted cannot be compared.
        ``proof``: ``verify`` is asked as well, as it always is for the whole.
        """
        evidence = Evidence(
            servers=self.servers,
            warehouse=self.warehouse,
            pipelines=tuple(self._watched(name) for name in PIPELINES),
            history=self.history,
            texts=(self.scratch, self.drivers, self.trace),
            secrets=(PASSWORD,),
        )
        verdict = check(evidence, None if whole else self.cursor)
        self.cursor = verdict.cursor
        wrong = [str(each) for each in verdict.findings]
        if whole or proof:
            wrong += [f"verify: {line}" for line in problems(self)]
        return verdict.records, wrong

    def _watched(self, name: str) -> Watched:
        keyed = name == "accounts"
        return Watched(
            name=name,
            topics=SHOP_TOPICS if name == SHOPS else (name,),
            table=self.table(name),
            quarantine=self.quarantine(name),
            columns=COLUMNS[name],
            keys=("k",) if keyed else (),
            order_by=("seq",) if keyed else (),
            key_format="string" if keyed and FORMS[self.forms[name]].delete is None else None,
            form=self.forms.get(name, JSON),
        )


@contextmanager
def new_world(folder: Path, forms: Mapping[str, str], beyond: Beyond) -> Iterator[World]:
    """A world whose broker runs until the block ends, and what of it is ``beyond``."""
    folder.mkdir(parents=True)
    with Broker(folder / "kafka") as broker, ExitStack() as stack:
        servers = broker.bootstrap_servers
        settings: dict[str, object] = {
            "kafka": {"bootstrap.servers": servers, "ssl.key.password": PASSWORD}
        }
        stored = stack.enter_context(stored_world(folder / "store", beyond))
        settings |= stored.settings if stored else {}
        world = World(folder, servers, broker, forms, settings=settings, store=stored)
        for topic in TABLES:
            world.topic(topic, PARTITIONS)
        world.choose_ways()
        world.writer = Writer(servers, world.history, forms)
        yield world
        del world.writer
