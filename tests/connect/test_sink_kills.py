"""SIGKILL of a driver over Spark Connect that sends: the counts are those of a driver with a JVM.

Only `at-least-once` runs there. The server outlives the driver: what it was asked to send may still
be sent after the driver is dead, and is counted as sent again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from rivermouth.local.broker import Broker
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.kafka.test_sink_kills import (
    LEAST,
    OF_DRIVER,
    PARTITIONS,
    POINTS,
    KilledLake,
    finish,
    kill,
)
from tests.kafka.test_sinks import sending

PLATFORMS = ("connect", "serverless")

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.thorough,
]


@dataclass
class TornOverConnect(KilledLake):
    """A lake whose drivers reach Spark through Connect."""

    platform: str = ""

    @property
    def source(self) -> str:
        return f"sink-kills-{self.platform}"

    @contextmanager
    def driver(
        self, failpoints: str = "", *, jvm_dies: bool = False
    ) -> Iterator[subprocess.Popen[str]]:
        assert isinstance(self.lake, ConnectLake)
        del jvm_dies  # the server outlives its drivers
        with self.lake.connected("p", failpoints=failpoints) as process:
            yield process


@pytest.fixture(scope="module", params=PLATFORMS)
def torn(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    connect_server: ConnectServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> TornOverConnect:
    folder = tmp_path_factory.mktemp(f"sink-kills-{request.param}")
    servers = rivermouth_broker.bootstrap_servers
    lake = ConnectLake(folder, servers, connect_server, request.param)
    made = TornOverConnect(lake, None, LEAST, platform=request.param)
    lake.topic(made.source, PARTITIONS)
    lake.topic(made.sink, 1)
    lake.describe(p=sending(made.source, made.sink))
    return made


@pytest.mark.parametrize("point", [each for each in POINTS if each not in OF_DRIVER])
def test_a_driver_killed_at_the_point_leaves_what_is_promised(
    torn: TornOverConnect, point: str
) -> None:
    kill(torn, point)


def test_after_all_kills_a_run_finishes_and_nothing_was_lost(torn: TornOverConnect) -> None:
    finish(torn)
