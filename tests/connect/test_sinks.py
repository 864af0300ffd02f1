"""Pipelines that send through Spark Connect: what works there, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import verify
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.kafka.test_sink_headers import expected, forwarding, produce
from tests.kafka.test_sinks import calling, read_back, sending
from tests.lake import bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(params=["connect", "serverless"])
def lake(
    request: pytest.FixtureRequest,
    rivermouth_broker: Broker,
    connect_server: ConnectServer,
    tmp_path: Path,
) -> ConnectLake:
    servers = rivermouth_broker.bootstrap_servers
    return ConnectLake(tmp_path, servers, connect_server, request.param)


@pytest.mark.thorough
def test_records_and_headers_are_sent_and_proved(lake: ConnectLake) -> None:
    source, to = f"headers-{lake.platform}", f"headers-{lake.platform}-out"
    lake.topic(source)
    lake.topic(to)
    lake.describe(p=forwarding(source, to))
    produce(lake.servers, source)

    with lake.connected("p") as driver:
        said = said_by(driver)

    assert driver.returncode == 0, said
    assert [each.headers() for each in read_back(lake.servers, to)] == expected(source)
    [proof] = verify(load(lake.file)).pipelines
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (5, 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("at-most-once", "delivery: at-most-once"),
        ("foreach_partition", "foreach_partition"),
    ],
)
def test_what_cannot_be_kept_there_is_refused_before_anything_is_read_or_made(
    lake: ConnectLake, kind: str, told: str
) -> None:
    source, to = f"refused-{lake.platform}-{kind}", f"refused-{lake.platform}-{kind}-out"
    lake.topic(source)
    lake.topic(to)
    lake.produce(source, [(None, bid(1), 0)])
    called: dict[str, Any] = calling(source, "tests.kafka.called:note")
    lake.describe(p=called if kind == "foreach_partition" else sending(source, to, delivery=kind))

    with lake.connected("p") as driver:
        said = said_by(driver)

    assert driver.returncode == 2, said
    assert "RM209" in said
    assert f"{told} " in said
    assert not lake.path("rivermouth.ledger_p").exists()
    assert read_back(lake.servers, to) == []
