"""Bad records that Spark parts from good ones are in quarantine in a store, where it makes none."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.lake import append_pipeline, bid, sums_pipeline
from tests.stores.lake import StoredLake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOO_MUCH = 2**63 - 1


def test_a_bad_record_of_a_pipeline_that_sends(
    stored: StoredLake, rivermouth_spark: SparkSession
) -> None:
    for topic in ("stored-sends", "stored-sent"):
        stored.topic(topic)
    stored.produce("stored-sends", [(None, bid(1), 0), (None, b"bad", 0), (None, bid(2), 0)])
    stored.configure(p={**append_pipeline("stored-sends"), "target": {"kafka": "stored-sent"}})
    assert stored.command("run", spark=rivermouth_spark).returncode == 0
    assert stored.command("verify", "--strict").returncode == 0


@pytest.mark.thorough
def test_records_by_which_a_total_would_not_fit(
    stored: StoredLake, rivermouth_spark: SparkSession
) -> None:
    topic = "stored-overflows"
    stored.topic(topic)
    stored.configure(p=sums_pipeline(topic))
    for prices in ((TOO_MUCH, 5), (1, 7)):
        stored.produce(topic, [(None, bid(n, price), 0) for n, price in enumerate(prices)])
        assert stored.command("run", spark=rivermouth_spark).returncode == 0
    assert stored.command("verify", "--strict").returncode == 0
    [bad] = stored.rows(f"sums.{topic.replace('-', '_')}_quarantine")
    assert bad["offset"] == 2
