"""Answers of an object store that are lost, late or wrong: nothing is lost or doubled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import check_finishes
from tests.kafka.test_kills import KEYS, PER_ROUND
from tests.modes import MODES, PARTITIONS
from tests.processes import said_by
from tests.stores.lake import StoredLake
from tests.stores.proxy import Fault, Trouble, between

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.thorough,
]


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("append", Fault.UNANSWERED),
        ("append", Fault.CONFLICT),
        ("upsert", Fault.LATE),
        ("upsert", Fault.BUSY_AFTER),
    ],
)
def test_an_answer_that_is_lost_loses_and_doubles_nothing(
    stored: StoredLake, rivermouth_spark: SparkSession, mode: str, fault: Fault
) -> None:
    topic = f"answers-{mode}-{fault.name.lower()}"
    with between(stored.store.port) as proxy:
        lake = replace(stored, endpoint=proxy.endpoint)
        lake.topic(topic, PARTITIONS)
        lake.configure(**{mode: MODES[mode].pipeline(topic)})
        number = lake.produce(topic, MODES[mode].records(PER_ROUND, 1, keys=KEYS))
        strikes = tuple((kind, n, fault.value) for kind in ("PUT commit",) for n in (2, 3))
        with proxy.troubled(Trouble(strikes=strikes)), lake.driver(mode) as driver:
            said_by(driver)
        check_finishes(lake, rivermouth_spark, mode, number)
