"""A broker that is gone while a pipeline sends: tried again, and nothing is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.faults.outcomes import applied, went_well
from tests.faults.spark_lake import SparkLake
from tests.faults.striking import arrival
from tests.kafka.test_sink_faults import configure
from tests.kafka.test_sinks import proved, read_back, sending
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

RECORDS = 10_000


@pytest.fixture
def own(tmp_path: Path, rivermouth_spark: SparkSession) -> Iterator[tuple[SparkLake, Broker]]:
    """A lake on a broker that the test may do anything to."""
    with Broker(tmp_path / "broker") as broker:
        yield SparkLake(tmp_path, broker.bootstrap_servers, rivermouth_spark), broker


def test_a_broker_that_freezes_while_it_is_sent_to_gets_every_record(
    own: tuple[SparkLake, Broker],
) -> None:
    lake, broker = own
    lake.topic("frozen-in", 2)
    lake.topic("frozen-out")
    # Small requests, so that the first record is there long before the last one; and a busy machine
    # must send all of them within the time in which a frozen broker has to answer.
    pipeline = sending("frozen-in", "frozen-out")
    configure(lake, pipeline, batch_size="500", delivery_timeout_ms="10000")
    lake.bids("frozen-in", RECORDS, partitions=2)
    arrived = arrival(lake.servers, "frozen-out", 1)
    with lake.continuous("p") as heard:
        wait_for(arrived)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: bool(heard.retries or heard.ends))
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        wait_for(lambda: applied(heard) == RECORDS)

    went_well(heard)
    first = heard.retries[0].error
    assert first.code == "RM507", first
    assert first.what.startswith("frozen-out did not take all records of frozen-in-0[0,")
    proof = proved(lake)
    assert proof["complete"], proof
    assert (proof["records"], proof["missing"]) == (RECORDS, 0)
    assert proof["repeated"] == len(read_back(lake.servers, "frozen-out")) - RECORDS
