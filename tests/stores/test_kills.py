"""SIGKILL of a real driver whose tables are in a real object store."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import check_finishes
from tests.kafka.test_kills import KEYS, PER_ROUND, killed_lake
from tests.modes import MODES
from tests.stores.lake import StoredLake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]

KILLED = {
    "append": ("P6", "P17", "P12"),
    "upsert": ("P22", "P12", "P18"),
    "sums": ("P22", "P17"),
    "insert": ("P17",),
}


@pytest.mark.short(("mode",), {("append",)})
@pytest.mark.parametrize("mode", KILLED)
def test_a_driver_killed_at_the_point_leaves_every_record_once(
    stored: StoredLake, rivermouth_spark: SparkSession, mode: str
) -> None:
    with killed_lake(stored, rivermouth_spark, mode, f"stored-{mode}") as killed:
        for number, point in enumerate(KILLED[mode]):
            killed.produce(MODES[mode].records(PER_ROUND, number, keys=KEYS))
            killed.kill(point)
        check_finishes(stored, rivermouth_spark, mode, killed.produced)
