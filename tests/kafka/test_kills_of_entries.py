"""SIGKILL of a real driver around commits that bring no rows to a keyed table.

Such a commit is the driver's own. Two drivers die at the birth of a pipeline, three in a batch of
which every record is bad; then good ones come, and nothing is lost or doubled.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.testing import Record
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.ways import CommitWays
from tests.faults.outcomes import check_finishes, check_sound
from tests.lake import Lake
from tests.modes import MODES, PARTITIONS
from tests.processes import said_by

KILLS = ("birth, P17", "birth, P18", "bad, P12", "bad, P17", "bad, P18")
GOOD = 100

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.thorough,
]


class Torn:
    """A lake with one keyed pipeline, whose drivers are killed, one after the other."""

    def __init__(
        self, lake: Lake, spark: SparkSession, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.spark = spark
        self.lake, self.mode, self.topic = lake, mode, f"entries-{mode}"
        self.trace = lake.folder / "trace.jsonl"
        self.produced = 0
        monkeypatch.setenv("RIVERMOUTH_TRACE", str(self.trace))
        lake.topic(self.topic, PARTITIONS)
        lake.configure(**{mode: MODES[mode].pipeline(self.topic)})

    @property
    def table(self) -> Path:
        return self.lake.path(str(load(self.lake.file).pipelines[self.mode].target.table))

    def produce(self, records: list[Record]) -> None:
        self.produced += self.lake.produce(self.topic, records)

    def die(self, point: str) -> None:
        """A driver that is killed at the point; what it leaves is sound."""
        with self.lake.driver(self.mode, spark=self.spark, failpoints=f"{point}=kill") as driver:
            said = said_by(driver)
        assert driver.returncode == -signal.SIGKILL, said
        check_sound(self.lake)


@pytest.fixture(params=["upsert", "insert", "aggregate", "sums"])
def torn(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Torn:
    lake = Lake(tmp_path, rivermouth_broker.bootstrap_servers)
    return Torn(lake, rivermouth_spark, request.param, monkeypatch)


def test_drivers_killed_at_entries_without_rows_leave_every_record_once(torn: Torn) -> None:
    for each in KILLS:
        kind, _, point = each.partition(", ")
        if kind == "bad":
            torn.produce([(b"%d" % n, b"bad", n % PARTITIONS) for n in range(4)])
        torn.die(point)
    told = CommitWays(torn.trace, {torn.mode: torn.table}).count()
    assert told["files"] == 2, "the birth, and one batch of all bad records"
    assert told["spark"] == 0

    torn.produce(MODES[torn.mode].records(GOOD, seed=1))
    check_finishes(torn.lake, torn.spark, torn.mode, torn.produced)
    assert CommitWays(torn.trace, {torn.mode: torn.table}).count()["spark"] > 0
    assert Paths(torn.trace, {torn.mode: torn.table}).check() == []
