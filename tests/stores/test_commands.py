"""The commands over tables in a real object store."""

from __future__ import annotations

import json
import os
import time

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import TableName
from tests.lake import append_pipeline, bid, insert_pipeline, order, upsert_pipeline
from tests.stores.lake import StoredLake, lake_in

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
]

DAYS_S = 86400


def test_every_command_works_over_a_store(
    stored: StoredLake, rivermouth_spark: SparkSession
) -> None:
    lake, topic, keyed, spark = stored, "stored-commands", "stored-orders", rivermouth_spark
    lake.topic(topic, 2)
    lake.topic(keyed)
    lake.produce(topic, [(None, bid(n) if n % 10 else b"bad", n % 2) for n in range(50)])
    lake.produce(keyed, [(b"k", order(n % 7, f"s{n}", n), 0) for n in range(50)])
    first = {**insert_pipeline(topic), "ledger": "first"}
    lake.configure(bids=append_pipeline(topic), first=first, orders=upsert_pipeline(keyed))
    assert lake.command("validate").returncode == 0
    assert lake.command("run", spark=spark).returncode == 0
    assert lake.command("verify", "--strict").returncode == 0

    told = json.loads(lake.command("status", "--json").stdout)["pipelines"]
    assert [each["state"] for each in told] == ["OK", "OK", "OK"]
    counted = lake.command("sql", "SELECT count(*) AS n FROM bronze.stored_commands", "--json")
    assert json.loads(counted.stdout) == [{"n": 45}]
    bad = lake.command(
        "sql", "SELECT count(*) AS n FROM bronze.stored_commands_quarantine", "--json"
    )
    assert json.loads(bad.stdout) == [{"n": 5}]
    latest = "SELECT order_id, status FROM silver.stored_orders ORDER BY order_id LIMIT 1"
    found = json.loads(lake.command("sql", latest, "--json").stdout)
    assert found == [{"order_id": 0, "status": "s49"}]
    assert "orders: 2 entries" in lake.command("offsets rebuild").stdout

    # What a dead task has left is removed once it is old, and what is young stays.
    table = lake_in(lake.store, lake.prefix).store(TableName("bronze", "stored_commands"))
    old, young = "part-old.parquet", "part-young.parquet"
    for each in (old, young):
        table.put(each, b"left")
    ten_days_ago, file = time.time() - 10 * DAYS_S, lake.path("bronze.stored_commands") / old
    if keeps_files := file.exists():
        os.utime(file, (ten_days_ago, ten_days_ago))
    assert lake.command("maintain", spark=spark).returncode == 0
    assert (table.has(old), table.has(young)) == (not keeps_files, True)

    into = ("bids", "--from", "earliest", "--into", "again.bids", "--yes")
    assert "45 rows" in lake.command("replay", *into, spark=spark).stdout
    assert "nothing to do" in lake.command("replay", *into, spark=spark).stdout
    refused = lake.command("replay", "first", "--from", "earliest", "--yes", spark=spark)
    assert (refused.returncode, "RM705" in refused.stderr) == (2, True)
    assert lake.command("verify", "--since", "last").returncode == 0
