"""SIGKILL of a real driver whose tables are in a real object store; and two drivers at once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from rivermouth.verification import verify
from tests.faults.outcomes import check_finishes, check_sound
from tests.kafka.test_kills import KEYS, PER_ROUND, killed_lake
from tests.modes import MODES, PARTITIONS
from tests.processes import said_by
from tests.stores.lake import StoredLake
from tests.stores.proxy import Fault, Trouble, between

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]

KILLED = {
    "append": ("P6", "P17", "P12"),
    "upsert": ("P22", "P12", "P18"),
    "sums": ("P22", "P17"),
    "insert": ("P17",),
}


@pytest.fixture
def stored(tmp_path: Path, rivermouth_broker: Broker, rivermouth_store: LocalS3) -> StoredLake:
    """An empty lake of the test's own in the common store."""
    servers = rivermouth_broker.bootstrap_servers
    return StoredLake(tmp_path, servers, store=rivermouth_store, prefix=f"kills/{tmp_path.name}")


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


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LATE, Fault.BUSY_AFTER, Fault.CONFLICT])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_an_answer_that_is_lost_loses_and_doubles_nothing(
    stored: StoredLake, rivermouth_spark: SparkSession, mode: str, fault: Fault
) -> None:
    topic = f"answers-{mode}-{fault.name.lower()}"
    with between(stored.store.port) as proxy:
        lake = StoredLake(
            stored.folder,
            stored.servers,
            store=stored.store,
            prefix=stored.prefix,
            endpoint=proxy.endpoint,
        )
        lake.topic(topic, PARTITIONS)
        lake.configure(**{mode: MODES[mode].pipeline(topic)})
        number = lake.produce(topic, MODES[mode].records(PER_ROUND, 1, keys=KEYS))
        strikes = tuple((kind, n, fault.value) for kind in ("PUT commit",) for n in (2, 3))
        with proxy.troubled(Trouble(strikes=strikes)), lake.driver(mode) as driver:
            said_by(driver)
        check_finishes(lake, rivermouth_spark, mode, number)


@pytest.mark.thorough
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
