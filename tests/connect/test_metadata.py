"""Message keys and headers through Spark Connect: rows that are added, and rows of keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import verify
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.kafka.test_metadata import BOTH, TOLD, held, produce
from tests.lake import append_pipeline, bid, order, upsert_pipeline
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.thorough
def test_keys_and_headers_stand_as_kafka_has_them_and_are_proved(
    rivermouth_broker: Broker, connect_server: ConnectServer, tmp_path: Path
) -> None:
    lake = ConnectLake(tmp_path, rivermouth_broker.bootstrap_servers, connect_server, "serverless")
    a, u = "connect-told-a", "connect-told-u"
    for topic in (a, u):
        lake.topic(topic)
    produce(lake.servers, a, [*map(bid, range(4)), b"oops"], [*TOLD, (b"bad", None)])
    # The row of a key that comes twice has the metadata of the newer record.
    orders = [order(each, "new", 1) for each in range(4)]
    produce(lake.servers, u, [*orders, order(0, "paid", 2)], [*TOLD, TOLD[2]])
    lake.describe(a=append_pipeline(a, metadata=BOTH), u=upsert_pipeline(u, metadata=BOTH))

    with lake.connected("a", "u") as driver:
        said = said_by(driver)

    assert driver.returncode == 0, said
    assert held(lake, "bronze.connect_told_a", "auction") == dict(enumerate(TOLD))
    assert held(lake, "silver.connect_told_u", "order_id") == {**dict(enumerate(TOLD)), 0: TOLD[2]}
    for proof in verify(load(lake.file), strict=True).pipelines:
        assert proof.ok, proof.problems
