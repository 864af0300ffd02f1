"""SIGKILL of a driver at every point of a batch that is sent: what each promise comes to.

After each kill the ids in the sink are compared with the ledger. *ahead*: sent, but not committed;
the next run sends them again. *lost*: committed, but not sent. docs/sinks.md shows the table.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.faults.campaign.paths import Paths
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE
from tests.faults.striking import arrival, when
from tests.kafka.test_sinks import calling, proved, read_back, sending
from tests.lake import Lake, bid
from tests.pages import page
from tests.processes import ROOT, said_by

LEAST, MOST = "at-least-once", "at-most-once"
BY_SPARK = "at-most-once-by-spark"
"""Where Spark commits the entries. At least once that is killed through Connect."""
FUNCTION, FUNCTION_MOST = "function", "function-at-most-once"
KINDS = (LEAST, MOST, BY_SPARK, FUNCTION, FUNCTION_MOST)
PROMISE = {LEAST: LEAST, MOST: MOST, FUNCTION_MOST: MOST, BY_SPARK: MOST}
"""What is promised to each kind; a function with a transaction of its own is not in the table."""
LEDGER = "rivermouth.ledger_p"
PER_ROUND = 2000
PARTITIONS = 2

FIRST = "first record in the sink"
NONE, SOME, ALL = "0", "0 to all", "all"
POINTS = {
    "P3": ("before the batch is written", (NONE, NONE), (NONE, NONE)),
    "P14": ("before the rows are sent", (NONE, NONE), (NONE, ALL)),
    FIRST: ("while the rows are sent", (SOME, NONE), (NONE, SOME)),
    "P15": ("all rows are sent", (ALL, NONE), (NONE, NONE)),
    "P17": ("before the commit", (ALL, NONE), (NONE, NONE)),
    "P18": ("the commit is made", (NONE, NONE), (NONE, ALL)),
    "P6": ("the commit returned", (NONE, NONE), (NONE, ALL)),
    "P7": ("the commit was read back", (NONE, NONE), (NONE, ALL)),
}
"""Of each point its name on the page, and for each delivery, at least once and at most once, which
records of the batch are sent again, and which are never sent.
"""
OF_DRIVER = ("P17", "P18")
"""Those that are passed only where the driver commits by itself."""
SHORT = frozenset({(LEAST, "P15"), (MOST, "P14")})
"""A kill after which something is sent again, and one after which it is lost."""
SHORT_KINDS = {(kind,) for kind, _ in SHORT}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@dataclass
class KilledLake:
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
        proof = proved(self.lake)
        return int(proof["records"]) - int(proof["quarantined"])


def arrived(killed: KilledLake) -> Callable[[], bool]:
    """Whether something has got to the sink since now."""
    if killed.calls:
        before = killed.ids().total()
        return lambda: killed.ids().total() > before
    return arrival(killed.lake.servers, killed.sink, partitions=1)


@pytest.fixture(scope="module", params=KINDS)
def killed(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> KilledLake:
    kind: str = request.param
    lake = Lake(tmp_path_factory.mktemp(f"sink-kills-{kind}"), rivermouth_broker.bootstrap_servers)
    made = KilledLake(lake, rivermouth_spark, kind)
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


@pytest.mark.short(("killed", "point"), SHORT)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_what_is_promised(
    killed: KilledLake, point: str
) -> None:
    if killed.kind != BY_SPARK or point not in OF_DRIVER:
        kill(killed, point)


def kill(killed: KilledLake, point: str) -> None:
    """Kill a driver at the point, and compare what it has left with what is promised."""
    killed.produce()
    before, committed = killed.ids(), killed.committed()
    waiting = killed.produced - committed
    seen = arrived(killed) if point == FIRST else None

    # The commit of an opening passes these points, too.
    opens = not killed.lake.path(LEDGER).exists()
    times = 2 if opens and point in ("P3", *OF_DRIVER, "P6", "P7") else 1
    failpoints = "" if seen else f"{point}={times}*kill"
    # What a JVM sends goes on until it dies.
    with killed.driver(failpoints, jvm_dies=seen is not None) as driver:
        if seen:
            when(seen, driver.pid).join()
        said = said_by(driver)

    assert driver.returncode == -signal.SIGKILL, said
    sent, now = killed.ids().total() - before.total(), killed.committed()
    ahead = sent if now == committed else 0
    lost = 0 if now == committed else waiting - sent
    if killed.kind == FUNCTION:
        assert killed.ids().total() >= now  # what is committed is there
        assert max(killed.ids().values(), default=1) == 1
        return
    killed.lost += lost
    _, at_least_once, at_most_once = POINTS[point]
    again, never = at_least_once if PROMISE[killed.kind] == LEAST else at_most_once
    assert _fits(ahead, waiting, again), (ahead, waiting)
    assert _fits(lost, waiting, never), (lost, waiting)


def _fits(number: int, waiting: int, word: str) -> bool:
    """Whether so many of the records are as many as the table says."""
    if word == SOME:  # the kill may come after the last one
        return number <= waiting
    return number == (waiting if word == ALL else 0)


@pytest.mark.short(("killed",), SHORT_KINDS)
def test_after_all_kills_a_run_finishes_and_every_promise_was_kept(killed: KilledLake) -> None:
    finish(killed)


def finish(killed: KilledLake) -> None:
    """Run a driver to its end, and count what is in the sink after all kills."""
    killed.produce()
    with killed.driver() as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said

    proof, ids = proved(killed.lake), killed.ids()
    assert proof["ok"], proof
    assert proof["records"] - proof["quarantined"] == killed.produced > 0
    if PROMISE.get(killed.kind) == MOST:
        assert max(ids.values()) == 1
        assert len(ids) == killed.produced - killed.lost
        missing = proof["not_checked"].get("records_not_in_the_sink", 0)
        assert missing == (
            0 if killed.calls else killed.lost
        )  # nobody can read what a function has
        return
    assert len(ids) == killed.produced
    repeated = ids.total() - len(ids)
    assert repeated == (0 if killed.kind == FUNCTION else proof["repeated"])


@pytest.mark.short(("killed",), SHORT_KINDS)
def test_after_all_kills_what_the_drivers_traced_is_a_path_of_the_model(killed: KilledLake) -> None:
    effect = AT_MOST_ONCE if PROMISE.get(killed.kind) == MOST else AT_LEAST_ONCE
    steps = Counter(
        json.loads(each)["step"] for each in killed.trace.read_text("utf-8").splitlines()
    )
    assert steps["send"] >= steps["sent"] > 0
    assert Paths(killed.trace, {"p": killed.lake.path(LEDGER)}, effect).check() == []


def table() -> str:
    """The table of docs/sinks.md."""
    lines = [
        f"| killed | `{LEAST}`: sent again | lost | `{MOST}`: sent again | lost "
        "| a function with its own transaction: stored twice | lost |",
        "|---|---|---|---|---|---|---|",
    ]
    for words, at_least_once, at_most_once in POINTS.values():
        cells = [*at_least_once, *at_most_once, NONE, NONE]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_on_sinks_shows_the_table_and_the_function_that_is_killed_here() -> None:
    code = (ROOT / "tests" / "kafka" / "sqlite_sink.py").read_text(encoding="utf-8")
    assert table() in page("sinks")
    assert f"```python\n{code}```" in page("sinks")
