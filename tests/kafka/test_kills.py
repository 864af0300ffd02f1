"""SIGKILL of a real driver at every named point, in every mode; then: nothing lost or doubled.

Each round produces more records, starts a driver that goes on from whatever the last kill
left behind, and kills it at the next point. The table is proved against the topic after
every kill, and once more after a last run that is let finish. ``make test`` kills at each point in
one of the modes.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from tests.faults.campaign.paths import Paths
from tests.faults.outcomes import check_finishes, check_sound
from tests.lake import Lake, through_spark
from tests.modes import MODES, PARTITIONS
from tests.pairs import pairs
from tests.processes import end_group, said_by
from tests.waiting import PATIENCE_S

# The last points first: each run then works off what the earlier rounds have left.
IN_PROCESS = ("P11", "P9", "P8", "P7", "P6", "P12", "P3", "P2", "P1", "P10", "P0")
OF_FILES = ("P18", "P17", "P16")
WATCHED = ("data files written", "commit visible")
POINTS = (*IN_PROCESS, *OF_FILES, *WATCHED)
WAYS = {**MODES, "spark": replace(MODES["append"], pipeline=through_spark)}
PER_ROUND = 240
LIMIT = 3 * PER_ROUND
"""Of a batch: what the last kills have left is a few batches for the last run."""
KEYS = 100
NEED_BAD = ("P12",)
"""Points that only a batch with bad records passes."""
ONLY = {
    "upsert": (*IN_PROCESS, *WATCHED),
    "spark": ("P6", "P12", "P3", "P10", *WATCHED),
    "aggregate": ("P9", "P6", "P12", "P3", *WATCHED),
    "sums": ("P6", "P12", "P3", *WATCHED),
    "insert": ("P6", "P3", "commit visible"),
}
"""Where a mode is killed; elsewhere it does what another one does, which is killed there."""
ONCE = {("aggregate", "P6"), ("sums", "P3"), ("spark", "P12")}
ELSEWHERE = [point for point in IN_PROCESS if point not in {once for _, once in ONCE}]
SHORT = pairs(["append", "upsert"], ELSEWHERE) | pairs(["append"], OF_FILES) | ONCE
"""Each point once, and each mode and way at one of them at least."""
SHORT_MODES = {(mode,) for mode, _ in SHORT}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@dataclass
class Torn:
    """A lake whose drivers are killed, one after the other."""

    lake: Lake
    spark: SparkSession
    mode: str
    produced: int = 0

    @property
    def table(self) -> Path:
        pipeline = load(self.lake.file).pipelines[self.mode]
        return self.lake.path(str(pipeline.target.table))

    @property
    def trace(self) -> Path:
        return self.lake.folder / "trace.jsonl"

    def produce(self, point: str) -> None:
        """The records of one more round; bad ones in every second, and where they are needed.

        A batch without any lands in another way.
        """
        seed = self.produced // PER_ROUND
        made = WAYS[self.mode].records(
            PER_ROUND, seed, bad=bool(seed % 2) or point in NEED_BAD, keys=KEYS
        )
        self.produced += self.lake.produce(f"kills-{self.mode}", made)


@pytest.fixture(scope="module", params=WAYS)
def torn(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Torn]:
    mode: str = request.param
    lake = Lake(tmp_path_factory.mktemp(f"kills-{mode}"), rivermouth_broker.bootstrap_servers)
    topic = f"kills-{mode}"
    lake.topic(topic, PARTITIONS)
    lake.configure(**{mode: WAYS[mode].pipeline(topic, max_offsets_per_trigger=LIMIT)})
    torn = Torn(lake, rivermouth_spark, mode)
    os.environ["RIVERMOUTH_TRACE"] = str(torn.trace)
    yield torn
    del os.environ["RIVERMOUTH_TRACE"]


def kill_when(process_group: int, table: Path, sign: str) -> threading.Thread:
    """Kill a driver and its JVM when a sign of its first commit shows in the table's folder."""
    log = table / "_delta_log"
    before = {*table.glob("*.parquet"), *log.glob("*.json")} if table.exists() else set()
    pattern = (table, "*.parquet") if sign == "data files written" else (log, "*.json")

    def watch() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if any(each not in before for each in pattern[0].glob(pattern[1])):
                end_group(process_group)
                return
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.short(("torn", "point"), SHORT)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_every_record_once(torn: Torn, point: str) -> None:
    if point not in ONLY.get(torn.mode, POINTS):
        return
    torn.produce(point)

    watched = point in WATCHED
    # A commit that is under way must die with its driver.
    spark, failpoints = (None, "") if watched else (torn.spark, f"{point}=kill")
    with torn.lake.driver(torn.mode, spark=spark, failpoints=failpoints) as driver:
        if watched:
            kill_when(driver.pid, torn.table, point).join()
        said = said_by(driver)

    assert driver.returncode == -signal.SIGKILL, said
    if torn.table.exists():
        check_sound(torn.lake)


@pytest.mark.short(("torn",), SHORT_MODES)
def test_after_all_kills_a_run_finishes_and_verify_proves_it(torn: Torn) -> None:
    check_finishes(torn.lake, torn.spark, torn.mode, torn.produced)
    assert not list((torn.lake.scratch / "checkpoints").iterdir())


@pytest.mark.short(("torn",), SHORT_MODES)
def test_after_all_kills_what_the_drivers_traced_is_a_path_of_the_model(torn: Torn) -> None:
    assert torn.trace.exists()
    assert Paths(torn.trace, {torn.mode: torn.table}).check() == []
