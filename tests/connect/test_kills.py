"""SIGKILL of a driver over Spark Connect at every named point, on clusters in standard mode and
on serverless compute, in every mode of writing; then: nothing lost or doubled.

The modes are those of ``tests.connect.modes``. The server outlives the driver, as a cluster does:
what it was asked to commit may still come through after the driver is dead.
"""

from __future__ import annotations

import signal
from itertools import product

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verify import Kind, verify
from tests.connect.lake import ConnectLake
from tests.connect.modes import MODES, PARTITIONS
from tests.connect.server import ConnectServer
from tests.processes import said_by

PLATFORMS = ("connect", "serverless")
# The last points first: each run then works off what the earlier rounds have left.
POINTS = ("P11", "P9", "P8", "P7", "P6", "P13", "P12", "P3", "P2", "P1", "P10", "P0")
PER_ROUND = 60

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@pytest.fixture(scope="module", params=product(PLATFORMS, MODES), ids="-".join)
def lake(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    connect_server: ConnectServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> ConnectLake:
    platform, mode = request.param
    folder = tmp_path_factory.mktemp(f"{platform}-{mode}")
    kept = ConnectLake(folder, rivermouth_broker.bootstrap_servers, connect_server, platform)
    topic = f"{platform}-{mode}"
    kept.topic(topic, PARTITIONS)
    kept.describe(**{mode: MODES[mode].pipeline(topic, max_offsets_per_trigger=PER_ROUND)})
    return kept


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_every_record_once(
    lake: ConnectLake, point: str
) -> None:
    config = load(lake.file)
    [mode] = config.pipelines
    if point in MODES[mode].never:
        return
    lake.produce(f"{lake.platform}-{mode}", MODES[mode].records(PER_ROUND, POINTS.index(point)))
    with lake.connected(mode, failpoints=f"{point}=kill") as driver:
        said = said_by(driver)
    assert driver.returncode == -signal.SIGKILL, said
    if point not in ("P0", "P10") or lake.path(str(config.pipelines[mode].target.table)).exists():
        [proof] = verify(config).pipelines
        wrong = (Kind.MISSING, Kind.DUPLICATED, Kind.GAP, Kind.OVERLAP, Kind.FAULT)
        assert [proof.counts[each] for each in wrong] == [0, 0, 0, 0, 0], proof


def test_a_last_run_brings_everything_in(lake: ConnectLake) -> None:
    config = load(lake.file)
    [mode] = config.pipelines
    with lake.connected(mode) as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said
    [proof] = verify(config).pipelines
    assert proof.ok, proof
    assert proof.records == PER_ROUND * (len(POINTS) - len(MODES[mode].never))
