"""Two drivers at once, whose tables are in an object store."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verification import verify
from tests.faults.outcomes import check_finishes, check_sound
from tests.kafka.test_kills import KEYS, PER_ROUND
from tests.modes import MODES, PARTITIONS
from tests.processes import said_by
from tests.stores.lake import StoredLake

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.thorough,
]


@pytest.mark.parametrize("mode", ["append", "upsert", "sums"])
def test_two_drivers_at_once_lose_and_double_nothing(
    stored: StoredLake, rivermouth_spark: SparkSession, mode: str
) -> None:
    topic = f"two-{mode}"
    stored.topic(topic, PARTITIONS)
    limits = {"max_offsets_per_trigger": 40}
    stored.configure(**{mode: MODES[mode].pipeline(topic, **limits)})
    number = stored.produce(topic, MODES[mode].records(2 * PER_ROUND, 1, keys=KEYS))
    with ExitStack() as stack:
        drivers = [stack.enter_context(stored.driver(mode)) for _ in range(2)]
        said = [said_by(each) for each in drivers]
    assert any(each.returncode == 0 for each in drivers) or "RM403" in "".join(said), said
    check_sound(stored)
    stored.configure(**{mode: MODES[mode].pipeline(topic)})
    check_finishes(stored, rivermouth_spark, mode, number)
    [proof] = verify(load(stored.file), strict=True).pipelines
    assert proof.ok
