"""Records that strain: too big for a JSON parser, or with times that lie."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, bid, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MEGABYTE = 1 << 20


@pytest.mark.thorough
def test_a_record_of_many_megabytes_becomes_its_row(lake: SparkLake) -> None:
    lake.topic("huge", max_message_bytes=str(64 * MEGABYTE))
    lake.configure(p={**append_pipeline("huge"), "schema": "id STRING, text STRING"})
    options = {"bootstrap.servers": lake.servers, "message.max.bytes": 64 * MEGABYTE}
    producer = Producer({**options, "log_level": 2})
    sizes = (3 * MEGABYTE, 21 * MEGABYTE, 1)
    values = [json.dumps({"id": str(size), "text": "x" * size}).encode() for size in sizes]
    for value in values:
        producer.produce("huge", value)
    assert producer.flush(60) == 0

    heard = lake.go()

    assert (heard.ends[0].applied, heard.ends[0].quarantined) == (3, 0)
    assert sorted(len(row["text"]) for row in lake.rows("bronze.huge")) == sorted(sizes)
    check_proved(lake, records=3)


@pytest.mark.thorough
def test_times_that_lie_decide_nothing_unless_they_are_configured_to(lake: SparkLake) -> None:
    lake.topic("lies", retention_ms="-1")
    pipeline = upsert_pipeline("lies")
    pipeline["target"]["order_by"] = []
    lake.configure(p=pipeline)
    producer = Producer({"bootstrap.servers": lake.servers, "log_level": 2})
    for at, created_ms in (("9999-12-31", 1_000), ("0001-01-01", 1), ("1969-12-31", 2_000)):
        value = {"order_id": 1, "status": at, "updated_at": f"{at}T23:59:59Z"}
        producer.produce("lies", json.dumps(value).encode(), b"1", timestamp=created_ms)
        assert producer.flush(30) == 0
        lake.go()

    [row] = lake.rows("silver.lies")
    assert (row["status"], row["updated_at"].year) == ("1969-12-31", 1969)
    check_proved(lake, records=3)


def test_a_time_that_spark_cannot_hold_is_named_with_its_record(lake: SparkLake) -> None:
    """Nanoseconds where Kafka counts milliseconds; brokers before Kafka 4 take them by default."""
    lake.topic("far", message_timestamp_after_max_ms=str(2**62))
    lake.configure(p=append_pipeline("far"))
    producer = Producer({"bootstrap.servers": lake.servers, "log_level": 2})
    for created in (1_700_000_000_000, 1_700_000_000_000_000_000, 1_700_000_000_001):
        producer.produce("far", bid(1), timestamp=created)
    assert producer.flush(30) == 0

    failed = lake.refused()

    assert (failed.code, failed.where) == ("RM503", "p: far partition 0 offset 1")
    assert failed.what == "a record has a timestamp that Spark cannot hold"
    assert not lake.path("bronze.far").exists() or lake.rows("bronze.far") == []
