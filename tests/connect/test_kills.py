"""SIGKILL of a driver over Spark Connect at every named point, on clusters in standard mode and
on serverless compute, in every mode of writing; then: nothing lost or doubled.

The modes are those of ``tests.modes``. The server outlives the driver, as a cluster does:
what it was asked to commit may still come through after the driver is dead. ``make test`` kills at
each point once: appends on clusters, upserts on serverless compute.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from itertools import product

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import Kind, verify
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.modes import MODES, PARTITIONS
from tests.pairs import pairs
from tests.processes import said_by

PLATFORMS = ("connect", "serverless")
# The last points first: each run then works off what the earlier rounds have left.
POINTS = ("P11", "P9", "P8", "P13", "P7", "P6", "P12", "P3", "P2", "P1", "P10", "P0")
PER_ROUND = 60

Shape = tuple[str, str]
"""A platform, and a mode of writing."""

SHAPES: list[Shape] = [*product(PLATFORMS, MODES)]
SHORT_SHAPES: list[Shape] = [("serverless", "upsert")]


def passes(shape: Shape, point: str) -> bool:
    """Whether the point is on the way of a driver of this shape."""
    _, mode = shape
    return point not in MODES[mode].never


# The point that a local driver does not pass: ``make test`` kills that one at all others.
SHORT_POINTS = ("P13",)
SHORT = pairs(SHORT_SHAPES, SHORT_POINTS, passes)

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]


@dataclass
class Torn:
    """A lake whose drivers are killed, one after the other."""

    lake: ConnectLake
    mode: str
    produced: int = 0

    @property
    def topic(self) -> str:
        return f"{self.lake.platform}-{self.mode}"

    def produce(self, point: str) -> None:
        """The records of one more round; bad ones in every second, and where they are needed.

        A batch without any lands in another way.
        """
        seed = self.produced // PER_ROUND
        bad = bool(seed % 2) or point == "P12"
        made = MODES[self.mode].records(PER_ROUND, seed, bad=bad)
        self.produced += self.lake.produce(self.topic, made)


@pytest.fixture(scope="module", params=SHAPES, ids="-".join)
def torn(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    connect_server: ConnectServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Torn:
    platform, mode = request.param
    folder = tmp_path_factory.mktemp(f"{platform}-{mode}")
    lake = ConnectLake(folder, rivermouth_broker.bootstrap_servers, connect_server, platform)
    made = Torn(lake, mode)
    lake.topic(made.topic, PARTITIONS)
    # What the last kills have left is a few batches for the last run, not one for each of them.
    limit = {"max_offsets_per_trigger": 2 * PER_ROUND}
    lake.describe(**{mode: MODES[mode].pipeline(made.topic, **limit)})
    return made


@pytest.mark.short(("torn", "point"), SHORT)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_at_the_point_leaves_every_record_once(torn: Torn, point: str) -> None:
    if not passes((torn.lake.platform, torn.mode), point):
        return
    config = load(torn.lake.file)
    torn.produce(point)
    with torn.lake.connected(torn.mode, failpoints=f"{point}=kill") as driver:
        said = said_by(driver)
    assert driver.returncode == -signal.SIGKILL, said
    table = torn.lake.path(str(config.pipelines[torn.mode].target.table))
    if point not in ("P0", "P10") or table.exists():
        [proof] = verify(config).pipelines
        wrong = (Kind.MISSING, Kind.DUPLICATED, Kind.GAP, Kind.OVERLAP, Kind.FAULT)
        assert [proof.counts[each] for each in wrong] == [0, 0, 0, 0, 0], proof


@pytest.mark.short(("torn",), {(each,) for each in SHORT_SHAPES})
def test_a_last_run_brings_everything_in(torn: Torn) -> None:
    with torn.lake.connected(torn.mode) as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said
    [proof] = verify(load(torn.lake.file)).pipelines
    assert proof.ok, proof
    assert proof.records == torn.produced > 0
