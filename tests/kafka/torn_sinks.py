"""Lakes whose pipeline sends, for drivers that are killed one after the other."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verify import verify
from tests.faults.striking import arrival
from tests.kafka.test_sinks import calling, read_back, sending
from tests.lake import Lake, bid

LEAST, MOST = "at-least-once", "at-most-once"
FUNCTION, FUNCTION_MOST = "function", "function-at-most-once"
KINDS = (LEAST, MOST, FUNCTION, FUNCTION_MOST)
BY_SPARK = "at-most-once-by-spark"
"""Where Spark commits the entries. At least once that is killed through Connect."""
PROMISE = {LEAST: LEAST, MOST: MOST, FUNCTION_MOST: MOST, BY_SPARK: MOST}
"""What is promised to each kind; a function with a transaction of its own is not in the table."""
LEDGER = "rivermouth.ledger_p"
PER_ROUND = 2000
PARTITIONS = 2


@dataclass
class Torn:
    """A lake whose drivers are killed, one after the other."""

    lake: Lake
    spark: SparkSession | None
    kind: str
    produced: int = 0
    lost: int = 0

    @property
    def source(self) -> str:
        return f"sink-kills-{self.kind}"

    @property
    def calls(self) -> bool:
        """Whether the rows go to a function, and from there into the database."""
        return self.kind in (FUNCTION, FUNCTION_MOST)

    @property
    def sink(self) -> str:
        return f"{self.source}-out"

    @property
    def database(self) -> Path:
        return self.lake.folder / "bids.db"

    @property
    def trace(self) -> Path:
        return self.lake.folder / "trace.jsonl"

    def produce(self) -> None:
        """The records of one more round; one of them is bad."""
        made = [(None, bid(self.produced + i), i % PARTITIONS) for i in range(PER_ROUND)]
        self.lake.produce(self.source, [*made, (None, b"oops", 0)])
        self.produced += PER_ROUND

    def ids(self) -> Counter[str]:
        """How often each good record is in the sink."""
        if not self.calls:
            found = read_back(self.lake.servers, self.sink)
            return Counter(dict(each.headers())["rm-id"].decode() for each in found)
        with closing(sqlite3.connect(self.database)) as database:
            try:
                return Counter(
                    str(each) for (each,) in database.execute("SELECT auction FROM bids")
                )
            except sqlite3.OperationalError:
                return Counter()

    @contextmanager
    def driver(
        self, failpoints: str = "", *, jvm_dies: bool = False
    ) -> Iterator[subprocess.Popen[str]]:
        """A driver that ends where the topic ends, if it is not killed before.

        Where the rows go to a function, the workers of its JVM know the database.
        """
        spark = None if jvm_dies or self.calls else self.spark
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RIVERMOUTH_TRACE", str(self.trace))
            patch.setenv("BIDS_DB", str(self.database))
            with self.lake.driver("p", spark=spark, failpoints=failpoints) as process:
                yield process

    def committed(self) -> int:
        """How many good records the ledger covers."""
        if not self.lake.path(LEDGER).exists():
            return 0
        proof = self.proof()
        return int(proof["records"]) - int(proof["quarantined"])

    def proof(self) -> dict[str, Any]:
        [proof] = verify(load(self.lake.file), None).as_dict()["pipelines"]
        return dict(proof)


def whole(lake: Lake, spark: SparkSession, kind: str) -> Torn:
    """A lake of this kind, before any driver."""
    made = Torn(lake, spark, kind)
    lake.topic(made.source, PARTITIONS)
    if kind == FUNCTION:
        pipeline = calling(made.source, "tests.kafka.sqlite_sink:store")
    elif kind == FUNCTION_MOST:
        pipeline = calling(made.source, "tests.kafka.called:keep", delivery=MOST)
    else:
        lake.topic(made.sink, 1)
        commit = "spark" if kind == BY_SPARK else "auto"
        pipeline = sending(made.source, made.sink, delivery=PROMISE[kind], commit=commit)
    lake.configure(p=pipeline)
    return made


def arrived(torn: Torn) -> Callable[[], bool]:
    """Whether something has got to the sink since now."""
    if torn.calls:
        before = torn.ids().total()
        return lambda: torn.ids().total() > before
    return arrival(torn.lake.servers, torn.sink, partitions=1)
