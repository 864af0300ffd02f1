"""The commands over tables in a real object store."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from tests.lake import append_pipeline, bid, insert_pipeline
from tests.stores.lake import StoredLake

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
]

DAYS_S = 86400


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker, rivermouth_store: LocalS3) -> StoredLake:
    servers, prefix = rivermouth_broker.bootstrap_servers, f"commands/{tmp_path.name}"
    return StoredLake(tmp_path, servers, store=rivermouth_store, prefix=prefix)


def test_every_command_works_over_a_store(lake: StoredLake, rivermouth_spark: SparkSession) -> None:
    topic, spark = "stored-commands", rivermouth_spark
    lake.topic(topic, 2)
    lake.produce(topic, [(None, bid(n) if n % 10 else b"bad", n % 2) for n in range(50)])
    first = {**insert_pipeline(topic), "ledger": "first"}
    lake.configure(bids=append_pipeline(topic), first=first)
    assert lake.command("validate").returncode == 0
    assert lake.command("run", spark=spark).returncode == 0
    assert lake.command("verify", "--strict").returncode == 0

    told = json.loads(lake.command("status", "--json").stdout)["pipelines"]
    assert [each["state"] for each in told] == ["OK", "OK"]
    counted = lake.command("sql", "SELECT count(*) AS n FROM bronze.stored_commands", "--json")
    assert json.loads(counted.stdout) == [{"n": 45}]
    bad = lake.command(
        "sql", "SELECT count(*) AS n FROM bronze.stored_commands_quarantine", "--json"
    )
    assert json.loads(bad.stdout) == [{"n": 5}]
    assert "2 entries" in lake.command("offsets rebuild").stdout

    # What a dead task has left is removed once it is old, and what is young stays.
    table = lake.path("bronze.stored_commands")
    old, young = (table / f"part-{each}.parquet" for each in ("old", "young"))
    for each in (old, young):
        each.write_bytes(b"left")
    ten_days_ago = time.time() - 10 * DAYS_S
    os.utime(old, (ten_days_ago, ten_days_ago))
    assert lake.command("maintain", spark=spark).returncode == 0
    assert (old.exists(), young.exists()) == (False, True)

    into = ("bids", "--from", "earliest", "--into", "again.bids", "--yes")
    assert "45 rows" in lake.command("replay", *into, spark=spark).stdout
    assert "nothing to do" in lake.command("replay", *into, spark=spark).stdout
    refused = lake.command("replay", "first", "--from", "earliest", "--yes", spark=spark)
    assert (refused.returncode, "RM705" in refused.stderr) == (2, True)
    assert lake.command("verify", "--since", "last").returncode == 0
