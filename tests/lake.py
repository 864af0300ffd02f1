"""A lake in a temporary folder: its configuration file, its topics, its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.config import Config, load
from rivermouth.run.report import (
    CommitReport,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
)
from rivermouth.run.run import Run
from rivermouth.testing import Record, create_topic, delete_topic, produce
from tests.attached import ALIVE, gateway
from tests.commands import Done, command, scratch_in
from tests.processes import started
from tests.reading import rows_at
from tests.waiting import PATIENCE_S

BIDS = "auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP"
ORDERS = "order_id BIGINT, status STRING, amount DECIMAL(12,2), updated_at TIMESTAMP"
SUMS = {"n": "count()", "spent": "sum(price)", "last": "max(at)"}

PLANNERS: Mapping[str, Mapping[str, int]] = {
    "streaming": {},
    "driver": {"max_rate_per_partition": 100_000_000},
}
"""Who plans the batches, and the setting that makes it so: Structured Streaming knows no rate."""


def _pipeline(
    schema: str, topic: str, source: Mapping[str, Any], columns: str = BIDS, **target: Any
) -> dict[str, Any]:
    table = f"{schema}.{topic.replace('-', '_').replace('.', '_')}"
    return {
        "source": {"topics": [topic], "format": "json", **source},
        "schema": columns,
        "target": {"table": table, **target},
    }


def append_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """An append pipeline from ``topic`` into ``bronze.<topic>``."""
    return _pipeline("bronze", topic, source)


def through_spark(topic: str, **source: Any) -> dict[str, Any]:
    """The same, with commits by Spark's writer."""
    return _pipeline("bronze", topic, source, commit="spark")


def upsert_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """An upsert pipeline from ``topic`` into ``silver.<topic>``; tombstones by text keys."""
    target = {"mode": "upsert", "keys": ["order_id"], "order_by": ["updated_at"]}
    return _pipeline("silver", topic, {"key": "string", **source}, ORDERS, **target)


def events_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """An upsert of Debezium's events from ``topic`` into ``silver.<topic>``."""
    target = {"mode": "upsert", "keys": ["order_id"], "order_by": ["updated_at"]}
    envelope = {"debezium": {"decimal.handling.mode": "string"}}
    return _pipeline("silver", topic, {"envelope": envelope, **source}, ORDERS, **target)


def events_merging(topic: str, **source: Any) -> dict[str, Any]:
    """The same into ``merged.<topic>``, by Spark's MERGE."""
    made = events_pipeline(topic, **source)
    table = str(made["target"]["table"]).replace("silver.", "merged.")
    return {**made, "target": {**made["target"], "table": table, "commit": "spark"}}


def avro_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """An append pipeline of bids in Avro from ``topic`` into ``bronze.<topic>``."""
    of_avro = {"format": "avro", "schema_file": str(Path(__file__).parent / "bid.avsc")}
    return _pipeline("bronze", topic, {**of_avro, **source})


def merging(topic: str, **source: Any) -> dict[str, Any]:
    """The same into ``merged.<topic>``, by Spark's MERGE."""
    target = {"mode": "upsert", "keys": ["order_id"], "order_by": ["updated_at"], "commit": "spark"}
    return _pipeline("merged", topic, {"key": "string", **source}, ORDERS, **target)


def totals_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """A pipeline of totals from the bids in ``topic`` into ``gold.<topic>``."""
    metrics = {**SUMS, "bidders": "approx_distinct(bidder)"}
    return _pipeline("gold", topic, source, mode="aggregate", keys=["auction"], metrics=metrics)


def sums_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """The same into ``sums.<topic>``, without what Spark counts alone: tasks fold the records."""
    return _pipeline("sums", topic, source, mode="aggregate", keys=["auction"], metrics={**SUMS})


def insert_pipeline(topic: str, **source: Any) -> dict[str, Any]:
    """A pipeline of first rows from the bids in ``topic`` into ``first.<topic>``."""
    return _pipeline("first", topic, source, mode="insert", keys=["auction"])


def retrying(pipeline: dict[str, Any], seconds: int) -> dict[str, Any]:
    """The pipeline, with so much time to try again what may pass."""
    return {**pipeline, "retry": {"for": f"{seconds}s"}}


def impatient(topic: str, **source: Any) -> dict[str, Any]:
    """An append pipeline whose Spark waits for seconds where it would wait for minutes."""
    waits = {"default.api.timeout.ms": 4000, "request.timeout.ms": 3000}
    options = {f"kafka.{name}": str(each) for name, each in waits.items()}
    return append_pipeline(topic, **options, **source)


def bid(auction: int, price: int = 100) -> bytes:
    """A good record for ``append_pipeline``."""
    return json.dumps(
        {"auction": auction, "bidder": 7, "price": price, "at": "2026-01-02T03:04:05Z"}
    ).encode()


def order(order_id: int, status: str, second: int) -> bytes:
    """A good record for ``upsert_pipeline``; ``second`` of one minute orders it."""
    at = f"2026-01-02T03:{second // 60:02d}:{second % 60:02d}Z"
    return json.dumps(
        {"order_id": order_id, "status": status, "amount": "12.50", "updated_at": at}
    ).encode()


def event(order_id: int, status: str, second: int) -> bytes:
    """A good event for ``events_pipeline``; some delete, and some do not tell the status."""
    row = json.loads(order(order_id, status, second))
    if second % 10 == 3:
        return json.dumps({"op": "d", "before": row}).encode()
    if second % 10 == 4:
        row["status"] = "__debezium_unavailable_value"
    return json.dumps({"op": "u", "after": row}).encode()


def avro_bid(auction: int, price: int = 100) -> bytes:
    """A good record for ``avro_pipeline``."""
    numbers = (auction, 7, price, 1_767_323_045_000_000)
    return b"".join(map(_long, numbers))


def _long(number: int) -> bytes:
    """A number of Avro that is not negative: twice as much, seven bits in a byte."""
    number, found = 2 * number, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


@dataclass
class Heard:
    """A listener that keeps what it hears."""

    opens: list[OpenReport] = field(default_factory=list)
    commits: list[CommitReport] = field(default_factory=list)
    retries: list[RetryReport] = field(default_factory=list)
    ends: list[PipelineReport] = field(default_factory=list)
    mirrors: list[MirrorReport] = field(default_factory=list)

    def opened(self, report: OpenReport) -> None:
        self.opens.append(report)

    def committed(self, report: CommitReport) -> None:
        self.commits.append(report)

    def tries_again(self, report: RetryReport) -> None:
        self.retries.append(report)

    def not_mirrored(self, report: MirrorReport) -> None:
        self.mirrors.append(report)

    def finished(self, report: PipelineReport) -> None:
        self.ends.append(report)


@dataclass
class Lake:
    """A warehouse under ``folder``, read from the broker at ``servers``."""

    folder: Path
    servers: str
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Sections of the configuration that are not those of most tests."""

    @property
    def file(self) -> Path:
        return self.folder / "rivermouth.yml"

    @property
    def warehouse(self) -> Path:
        return self.folder / "lake"

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    def configure(self, **pipelines: Mapping[str, Any]) -> Config:
        """Write the configuration file and load it."""
        self.write(**pipelines)
        return load(self.file)

    def write(self, **pipelines: Mapping[str, Any]) -> None:
        """Write the configuration file, which need not be one for this process."""
        text = {
            "version": 1,
            "kafka": {"bootstrap.servers": self.servers},
            "warehouse": "./lake",
            "trigger": "200ms",
            **self.settings,
            "pipelines": pipelines,
        }
        self.file.write_text(json.dumps(text, indent=2), encoding="utf-8")

    def topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic; underscores in option names stand for dots."""
        options = {key.replace("_", "."): value for key, value in config.items()}
        create_topic(self.servers, name, partitions, options)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until its name is free."""
        delete_topic(self.servers, name)

    def produce(self, topic: str, records: Iterable[Record]) -> int:
        return produce(self.servers, topic, records)

    def bids(self, topic: str, count: int = 5, partitions: int = 1) -> int:
        """Produce good bids of the auctions 0, 1, …, over these partitions in turn."""
        return self.produce(topic, [(None, bid(n), n % partitions) for n in range(count)])

    def run(
        self,
        spark: SparkSession,
        *names: str,
        heard: Heard | None = None,
        audit: bool = False,
    ) -> Heard:
        """Run the named pipelines once, to the end of their topics."""
        kept = heard or Heard()
        run = Run(load(self.file), spark, self.scratch, continuous=False, audit=audit)
        run.pipelines(names, kept, threading.Event())
        return kept

    @contextmanager
    def driver(
        self,
        *names: str,
        spark: SparkSession | None = None,
        failpoints: str = "",
        continuous: bool = False,
        kind: str = "",
    ) -> Iterator[subprocess.Popen[str]]:
        """A driver process of its own; ``kind`` as ``tests.driver`` has it.

        With ``spark`` it works in the JVM of that session, see ``tests.attached``, unless it is
        killed where that JVM has to die, too. Else it has its own JVM, which ends with it.
        """
        kind = kind or ("continuous" if continuous else "once")
        command = [sys.executable, "-m", "tests.driver", str(self.file), kind, *names]
        environ = {**os.environ, "RIVERMOUTH_FAILPOINTS": failpoints, **scratch_in(self.scratch)}
        points = {each.partition("=")[0] for each in failpoints.split(",") if each}
        with ExitStack() as stack:
            if spark is not None and points <= ALIVE:
                environ |= stack.enter_context(gateway(spark))
            yield stack.enter_context(started(command, environ))

    def command(
        self,
        *words: str,
        spark: SparkSession | None = None,
        answer: str = "",
        file: Path | None = None,
    ) -> Done:
        """``rivermouth WORD FILE WORDS…`` in this process, see ``tests.commands``."""
        name, *rest = words
        arguments = (*name.split(), str(file or self.file), *rest)
        return command(*arguments, spark=spark, environ=scratch_in(self.scratch), answer=answer)

    def path(self, table: str) -> Path:
        schema, name = table.split(".")
        return self.warehouse / schema / name

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row of a table, read without Spark."""
        return rows_at(self.path(table))


@contextmanager
def continuous(lake: Lake, spark: SparkSession, *names: str) -> Iterator[Heard]:
    """Pipelines that run until the block ends, or until they fail."""
    heard, stop = Heard(), threading.Event()
    run = Run(load(lake.file), spark, lake.scratch, continuous=True)
    thread = threading.Thread(target=run.pipelines, args=(names, heard, stop))
    thread.start()
    try:
        yield heard
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the run did not come to its end"
