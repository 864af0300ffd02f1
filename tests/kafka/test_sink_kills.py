"""SIGKILL of a driver at every point of a batch that is sent: what each promise comes to.

After each kill the ids in the sink are compared with the ledger. *ahead*: sent, but not committed;
the next run sends them again. *lost*: committed, but not sent. docs/sinks.md shows the table.
"""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.faults.campaign.paths import Paths
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE
from tests.faults.striking import when
from tests.kafka.torn_sinks import (
    BY_SPARK,
    FUNCTION,
    KINDS,
    LEAST,
    LEDGER,
    MOST,
    PROMISE,
    Torn,
    arrived,
    whole,
)
from tests.lake import Lake
from tests.processes import ROOT, said_by

FIRST = "first record in the sink"
POINTS: dict[str, str] = {
    "P3": "before the batch is written",
    "P14": "before the rows are sent",
    FIRST: "while the rows are sent",
    "P15": "all rows are sent",
    "P17": "before the commit",
    "P18": "the commit is made",
    "P6": "the commit returned",
    "P7": "the commit was read back",
}
OF_DRIVER = ("P17", "P18")
"""Those that are passed only where the driver commits by itself."""
NONE, SOME, ALL = "0", "0 to all", "all"
PROMISED: dict[str, dict[str, tuple[str, str]]] = {
    LEAST: {
        "P3": (NONE, NONE),
        "P14": (NONE, NONE),
        FIRST: (SOME, NONE),
        "P15": (ALL, NONE),
        "P17": (ALL, NONE),
        "P18": (NONE, NONE),
        "P6": (NONE, NONE),
        "P7": (NONE, NONE),
    },
    MOST: {
        "P3": (NONE, NONE),
        "P14": (NONE, ALL),
        FIRST: (NONE, SOME),
        "P15": (NONE, NONE),
        "P17": (NONE, NONE),
        "P18": (NONE, ALL),
        "P6": (NONE, ALL),
        "P7": (NONE, ALL),
    },
}
"""By delivery and point: which records of the batch are sent again, and which are never sent."""
SHORT = frozenset({(LEAST, "P15"), (MOST, "P14")})
"""A kill after which something is sent again, and one after which it is lost."""
SHORT_KINDS = {(kind,) for kind, _ in SHORT}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@pytest.fixture(scope="module", params=KINDS)
def torn(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Torn:
    folder = tmp_path_factory.mktemp(f"sink-kills-{request.param}")
    lake = Lake(folder, rivermouth_broker.bootstrap_servers)
    return whole(lake, rivermouth_spark, request.param)


@pytest.fixture(scope="module")
def torn_by_spark(
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Torn:
    folder = tmp_path_factory.mktemp(f"sink-kills-{BY_SPARK}")
    lake = Lake(folder, rivermouth_broker.bootstrap_servers)
    return whole(lake, rivermouth_spark, BY_SPARK)


@pytest.mark.short(("torn", "point"), SHORT)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_what_is_promised(torn: Torn, point: str) -> None:
    kill(torn, point)


@pytest.mark.thorough
@pytest.mark.parametrize("point", [each for each in POINTS if each not in OF_DRIVER])
def test_so_does_one_whose_entries_spark_commits(torn_by_spark: Torn, point: str) -> None:
    kill(torn_by_spark, point)


def kill(torn: Torn, point: str) -> None:
    """Kill a driver at the point, and compare what it has left with what is promised."""
    torn.produce()
    before, committed = torn.ids(), torn.committed()
    waiting = torn.produced - committed
    seen = arrived(torn) if point == FIRST else None

    # The commit of an opening passes these points, too.
    opens = not torn.lake.path(LEDGER).exists()
    times = 2 if opens and point in ("P3", *OF_DRIVER, "P6", "P7") else 1
    failpoints = "" if seen else f"{point}={times}*kill"
    # What a JVM sends goes on until it dies.
    with torn.driver(failpoints, jvm_dies=seen is not None) as driver:
        if seen:
            when(seen, driver.pid).join()
        said = said_by(driver)

    assert driver.returncode == -signal.SIGKILL, said
    sent, now = torn.ids().total() - before.total(), torn.committed()
    ahead = sent if now == committed else 0
    lost = 0 if now == committed else waiting - sent
    if torn.kind == FUNCTION:
        assert torn.ids().total() >= now  # what is committed is there
        assert max(torn.ids().values(), default=1) == 1
        return
    torn.lost += lost
    promised = PROMISED[PROMISE[torn.kind]][point]
    assert _fits(ahead, waiting, promised[0]), (ahead, waiting)
    assert _fits(lost, waiting, promised[1]), (lost, waiting)


def _fits(number: int, waiting: int, word: str) -> bool:
    """Whether so many of the records are as many as the table says."""
    if word == SOME:  # the kill may come after the last one
        return number <= waiting
    return number == (waiting if word == ALL else 0)


@pytest.mark.short(("torn",), SHORT_KINDS)
def test_after_all_kills_a_run_finishes_and_every_promise_was_kept(torn: Torn) -> None:
    finish(torn)


@pytest.mark.thorough
def test_after_all_kills_every_promise_was_kept_where_spark_commits(torn_by_spark: Torn) -> None:
    finish(torn_by_spark)
    table = torn_by_spark.lake.path(LEDGER)
    assert torn_by_spark.trace.exists()
    assert Paths(torn_by_spark.trace, {"p": table}, AT_MOST_ONCE).check() == []


def finish(torn: Torn) -> None:
    """Run a driver to its end, and count what is in the sink after all kills."""
    torn.produce()
    with torn.driver() as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said

    proof, ids = torn.proof(), torn.ids()
    assert proof["ok"], proof
    assert proof["records"] - proof["quarantined"] == torn.produced > 0
    if PROMISE.get(torn.kind) == MOST:
        assert max(ids.values()) == 1
        assert len(ids) == torn.produced - torn.lost
        told = proof["not_checked"].get("records_not_in_the_sink", 0)
        assert told == (0 if torn.calls else torn.lost)  # nobody can read what a function has
        return
    assert len(ids) == torn.produced
    repeated = ids.total() - len(ids)
    assert repeated == (0 if torn.kind == FUNCTION else proof["repeated"])


@pytest.mark.short(("torn",), SHORT_KINDS)
def test_after_all_kills_what_the_drivers_traced_is_a_path_of_the_model(torn: Torn) -> None:
    effect = AT_MOST_ONCE if PROMISE.get(torn.kind) == MOST else AT_LEAST_ONCE
    steps = Counter(json.loads(each)["step"] for each in torn.trace.read_text("utf-8").splitlines())
    assert steps["send"] >= steps["sent"] > 0
    assert Paths(torn.trace, {"p": torn.lake.path(LEDGER)}, effect).check() == []


def table() -> str:
    """The table of docs/sinks.md."""
    lines = [
        f"| killed | `{LEAST}`: sent again | lost | `{MOST}`: sent again | lost "
        "| a function with its own transaction: stored twice | lost |",
        "|---|---|---|---|---|---|---|",
    ]
    for point, words in POINTS.items():
        cells = [*PROMISED[LEAST][point], *PROMISED[MOST][point], NONE, NONE]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_on_sinks_shows_the_table() -> None:
    page = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    assert table() in page


def test_the_page_on_sinks_shows_the_function_that_is_killed_here() -> None:
    page = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    code = (ROOT / "tests" / "kafka" / "sqlite_sink.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```" in page
