"""A pipeline's own code through Spark Connect: in one pass and in two, with nothing that serverless
compute refuses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.verification import Unchecked, verify
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.kafka.own_code import a_pipeline
from tests.lake import append_pipeline, bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.thorough
def test_own_code_is_run_and_proved_on_serverless_compute(
    rivermouth_broker: Broker, connect_server: ConnectServer, tmp_path: Path
) -> None:
    lake = ConnectLake(tmp_path, rivermouth_broker.bootstrap_servers, connect_server, "serverless")
    kinds = ("select", "transform", "explode", "inline")
    for kind in kinds:
        lake.topic(f"connect-{kind}", 2)
        lake.produce(f"connect-{kind}", [(None, bid(each), each // 2 % 2) for each in range(20)])
    for kind in ("transform", "explode"):
        lake.produce(f"connect-{kind}", [(None, b"{oops", 0)])
    lake.topic("connect-arrays")
    lake.produce("connect-arrays", [(None, b"[%b,%b]" % (bid(1), bid(2)), 0), (None, b"{}", 0)])
    arrays = {**append_pipeline("connect-arrays"), "each": "$"}
    made = {kind: a_pipeline(f"connect-{kind}", kind) for kind in kinds}
    lake.describe(**made, arrays=arrays)

    with lake.connected(*kinds, "arrays") as driver:
        said = said_by(driver)

    assert driver.returncode == 0, said
    selected, transformed, exploded, inlined, elements = verify(load(lake.file)).pipelines
    assert selected.ok, selected
    assert transformed.ok, transformed
    assert selected.left == {Unchecked.MADE: 20}
    assert transformed.left == {Unchecked.MADE: 10, Unchecked.LEFT_OUT: 10}
    assert (transformed.records, transformed.quarantined) == (21, 1)
    assert exploded.ok, exploded
    assert exploded.left == {Unchecked.MADE: 19, Unchecked.LEFT_OUT: 7, Unchecked.EXPLODED: 13}
    assert (exploded.records, exploded.quarantined) == (21, 1)
    assert inlined.ok, inlined
    assert inlined.left == {Unchecked.MADE: 39, Unchecked.EXPLODED: 20}
    assert elements.ok, elements
    assert elements.left == {Unchecked.MADE: 2, Unchecked.EXPLODED: 1}
    assert elements.quarantined == 1
