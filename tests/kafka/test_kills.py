"""SIGKILL of a real driver at every named point, in every mode; then: nothing lost or doubled.

Each round produces more records, starts a driver that goes on from whatever the last kill
left behind, and kills it at the next point. The table is proved against the topic after
every kill, and once more after a last run that is let finish. ``make test`` kills at each point in
one of the modes.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.testing import Record
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.ways import CommitWays
from tests.faults.checker.log import Log
from tests.faults.outcomes import check_finishes, check_sound
from tests.faults.striking import when
from tests.lake import Lake, events_merging, merging, through_spark
from tests.modes import MODES, PARTITIONS
from tests.pairs import pairs
from tests.processes import said_by

# The last points first: each run then works off what the earlier rounds have left.
IN_PROCESS = ("P11", "P9", "P8", "P7", "P6", "P12", "P3", "P2", "P1", "P10", "P0")
OF_FILES = ("P18", "P17", "P16")
OF_KEYED_FILES = ("P22", "P19")
WATCHED = ("data files written", "commit visible")
POINTS = (*IN_PROCESS, *OF_KEYED_FILES, *OF_FILES, *WATCHED)
WAYS = {
    **MODES,
    "spark": replace(MODES["append"], pipeline=through_spark),
    "merge": replace(MODES["upsert"], pipeline=merging),
    "events_merge": replace(MODES["events"], pipeline=events_merging),
}
PER_ROUND = 240
LIMIT = 3 * PER_ROUND
"""Of a batch: what the last kills have left is a few batches for the last run."""
KEYS = 100
NEED_BAD = ("P12",)
"""Points that only a batch with bad records passes."""
ONLY = {
    "append": (*IN_PROCESS, *OF_FILES, *WATCHED),
    "spark": ("P6", "P12", "P3", "P10", *WATCHED),
    "merge": ("P6", "P12", "P3", *WATCHED),
    "aggregate": ("P9", "P6", "P12", "P3", *WATCHED),
    "sums": ("P22", "P12", "P17", "P19", *WATCHED),
    "insert": ("P17", "P3", "commit visible"),
    "events": ("P22", "P12", "P19", "commit visible"),
    "events_merge": ("P6", "P12", "commit visible"),
    "avro": ("P12", "P17", "data files written"),
}
"""Where a mode is killed; elsewhere it does what another one does, which is killed there."""
ONCE = {("aggregate", "P6"), ("merge", "P3"), ("spark", "P12"), ("sums", "P19")}
ELSEWHERE = [point for point in IN_PROCESS if point not in {once for _, once in ONCE}]
SHORT = pairs(["append", "upsert"], [*ELSEWHERE, *OF_FILES]) | {("upsert", "P22")} | ONCE
"""Each point once, and each mode and way at one of them at least."""
SHORT_MODES = {(mode,) for mode, _ in SHORT}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@dataclass
class KilledLake:
    """A lake with one pipeline whose drivers are killed, one after the other."""

    lake: Lake
    spark: SparkSession
    mode: str
    topic: str
    produced: int = 0

    @property
    def table(self) -> Path:
        pipeline = load(self.lake.file).pipelines[self.mode]
        return self.lake.path(str(pipeline.target.table))

    @property
    def trace(self) -> Path:
        return self.lake.folder / "trace.jsonl"

    def produce(self, records: list[Record]) -> None:
        self.produced += self.lake.produce(self.topic, records)

    def kill(self, point: str) -> None:
        """Kill a driver at a point, or when a sign of its first commit shows; what it leaves is
        sound.
        """
        watched = point in WATCHED
        # A commit that is under way must die with its driver.
        spark, failpoints = (None, "") if watched else (self.spark, f"{point}=kill")
        with self.lake.driver(self.mode, spark=spark, failpoints=failpoints) as driver:
            if watched:
                when(shows(self.table, point), driver.pid).join()
            said = said_by(driver)
        assert driver.returncode == -signal.SIGKILL, said
        if self.table.exists():
            check_sound(self.lake)


def shows(table: Path, sign: str) -> Callable[[], bool]:
    """Whether a sign of a commit has shown in the table's folder since now."""
    log = table / "_delta_log"
    before = {*table.glob("*.parquet"), *log.glob("*.json")} if table.exists() else set()
    folder, names = (table, "*.parquet") if sign == "data files written" else (log, "*.json")
    return lambda: any(each not in before for each in folder.glob(names))


@contextmanager
def killed_lake(
    lake: Lake, spark: SparkSession, mode: str, topic: str, **settings: Any
) -> Iterator[KilledLake]:
    """An empty one, whose drivers trace their steps."""
    lake.topic(topic, PARTITIONS)
    lake.configure(**{mode: WAYS[mode].pipeline(topic, **settings)})
    made = KilledLake(lake, spark, mode, topic)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIVERMOUTH_TRACE", str(made.trace))
        yield made


@pytest.fixture(scope="module", params=WAYS)
def killed(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KilledLake]:
    mode: str = request.param
    lake = Lake(tmp_path_factory.mktemp(f"kills-{mode}"), rivermouth_broker.bootstrap_servers)
    settings = {"max_offsets_per_trigger": LIMIT}
    with killed_lake(lake, rivermouth_spark, mode, f"kills-{mode}", **settings) as made:
        yield made


@pytest.mark.short(("killed", "point"), SHORT)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_every_record_once(
    killed: KilledLake, point: str
) -> None:
    if point not in ONLY.get(killed.mode, POINTS):
        return
    # Bad records in every second round, and where they are needed: without any, a batch lands in
    # another way.
    seed = killed.produced // PER_ROUND
    bad = bool(seed % 2) or point in NEED_BAD
    killed.produce(WAYS[killed.mode].records(PER_ROUND, seed, bad=bad, keys=KEYS))
    killed.kill(point)


@pytest.mark.short(("killed",), SHORT_MODES)
def test_after_all_kills_a_run_finishes_and_verify_proves_it(killed: KilledLake) -> None:
    check_finishes(killed.lake, killed.spark, killed.mode, killed.produced)
    assert not list((killed.lake.scratch / "checkpoints").iterdir())


@pytest.mark.short(("killed",), SHORT_MODES)
def test_after_all_kills_what_the_drivers_traced_is_a_path_of_the_model(
    killed: KilledLake,
) -> None:
    assert killed.trace.exists()
    assert Paths(killed.trace, {killed.mode: killed.table}).check() == []


ENTRIES = (("birth", "P17"), ("birth", "P18"), ("bad", "P12"), ("bad", "P17"), ("bad", "P18"))
"""Where drivers die around commits that bring no rows to a keyed table, which are their own: at the
birth of a pipeline, and in a batch of which every record is bad.
"""


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["upsert", "insert", "aggregate", "sums"])
def test_drivers_killed_at_entries_without_rows_leave_every_record_once(
    lake: Lake, rivermouth_spark: SparkSession, mode: str
) -> None:
    with killed_lake(lake, rivermouth_spark, mode, f"entries-{mode}") as killed:
        for batch, point in ENTRIES:
            if batch == "bad":
                killed.produce([(b"%d" % n, b"bad", n % PARTITIONS) for n in range(4)])
            killed.kill(point)
        killed.produce(WAYS[mode].records(100, seed=1))
        check_finishes(lake, rivermouth_spark, mode, killed.produced)
        commits = CommitWays(killed.trace, {mode: killed.table}).count()
        assert commits["files"] >= 2, "the birth, and one batch of all bad records"
        assert commits["spark"] == (1 if mode == "aggregate" else 0), "the good records"
        assert Paths(killed.trace, {mode: killed.table}).check() == []


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["upsert", "sums"])
def test_drivers_killed_while_files_are_joined_leave_every_record_once(
    lake: Lake, rivermouth_spark: SparkSession, mode: str
) -> None:
    batches = {"max_offsets_per_trigger": 20}
    with killed_lake(lake, rivermouth_spark, mode, f"joined-{mode}", **batches) as killed:
        for point in ("P20", "P21", "P20"):
            killed.produce(WAYS[mode].records(PER_ROUND, killed.produced, keys=KEYS))
            killed.kill(point)
        lake.configure(**{mode: WAYS[mode].pipeline(killed.topic)})  # the rest in one batch
        check_finishes(lake, rivermouth_spark, mode, killed.produced)
        joined = [each for each in Log(killed.table).update() if each.operation == "OPTIMIZE"]
        assert joined
        assert not any(each.changes_data for each in joined)
        assert Paths(killed.trace, {mode: killed.table}).check() == []
