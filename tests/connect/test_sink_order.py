"""The order in which records are sent where a batch is kept in files that Spark reads in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.kafka.test_sinks import read_back, sending
from tests.lake import bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

RECORDS = 20_000
SMALL_PARTS = {
    "spark.hadoop.parquet.block.size": "50000",
    "spark.sql.files.maxPartitionBytes": "50000",
    "spark.sql.files.openCostInBytes": "0",
}
"""What a large batch is to Spark by default, 20,000 records are here: a file of many parts."""


def test_records_of_a_partition_are_sent_in_their_order_from_files_of_many_parts(
    rivermouth_broker: Broker, tmp_path: Path
) -> None:
    servers = rivermouth_broker.bootstrap_servers
    with ConnectServer(tmp_path / "server", SMALL_PARTS) as server:
        lake = ConnectLake(tmp_path, servers, server, "connect")
        lake.topic("ordered-in")
        lake.topic("ordered-out")
        lake.describe(p=sending("ordered-in", "ordered-out"))
        lake.produce("ordered-in", [(b"one", bid(each), 0) for each in range(RECORDS)])
        with lake.connected("p") as driver:
            said = said_by(driver)

    assert driver.returncode == 0, said
    ids = [dict(each.headers())["rm-id"] for each in read_back(servers, "ordered-out")]
    assert ids == [b"p/ordered-in/0/%d" % each for each in range(RECORDS)]
