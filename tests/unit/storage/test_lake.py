"""Where tables lie, from a configuration: addresses, options, and credentials that are renewed."""

from __future__ import annotations

import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import OFFSETS_TABLE, TableName, load
from rivermouth.config.bucket import Bucket, read_bucket
from rivermouth.config.problems import Refused
from rivermouth.storage.client import Client, _Renewing
from rivermouth.storage.lake import Lake

pytestmark = pytest.mark.unit

ORDERS = TableName("silver", "orders")
TEXT = """version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: WAREHOUSE
storage: STORAGE
pipelines:
  p:
    source: {topics: [t], format: json}
    schema: id INT
    target: {table: silver.orders}
"""


def lake_of(folder: Path, warehouse: str, storage: str, secrets: Any = None) -> Lake:
    file = folder / "lake.yml"
    file.write_text(TEXT.replace("WAREHOUSE", warehouse).replace("STORAGE", storage))
    config = load(file, {"KEY": "of-env"})
    return Lake.of(config) if secrets is None else Lake.of(config, secrets)


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("s3://bucket/lake", Bucket("s3", "bucket", "lake")),
        ("s3a://bucket/a/b/", Bucket("s3", "bucket", "a/b")),
        ("s3://bucket", Bucket("s3", "bucket")),
        ("gs://bucket/lake", Bucket("gs", "bucket", "lake")),
        ("az://container/lake", Bucket("az", "container", "lake")),
        (
            "abfss://container@account.dfs.core.windows.net/lake",
            Bucket("az", "container", "lake", "account"),
        ),
        ("./lake", None),
        ("/data/lake", None),
    ],
)
def test_an_address_names_a_bucket_and_a_prefix(address: str, bucket: Bucket | None) -> None:
    assert read_bucket(address) == bucket


@pytest.mark.parametrize(
    "address", ["s3:/bucket", "s3://", "s3://b/a//c", "s3://b/../c", "s3://b/a?c", "hdfs://n/lake"]
)
def test_what_is_no_address_of_a_store_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        read_bucket(address)


def test_a_table_has_a_place_below_the_prefix(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "s3://bucket/lake", "{region: eu-west-1}")
    assert lake.address(ORDERS) == "s3://bucket/lake/silver/orders"
    store = lake.store(ORDERS)
    assert (store.prefix, store.where) == ("lake/silver/orders", lake.address(ORDERS))
    whole = lake_of(tmp_path, "s3://bucket", "{region: eu-west-1}")
    assert whole.store(OFFSETS_TABLE).prefix == "rivermouth/offsets"


def test_a_folder_is_a_lake_too(tmp_path: Path) -> None:
    lake = Lake.in_folder(tmp_path)
    assert lake.folder == tmp_path
    assert lake.address(ORDERS) == str(tmp_path / "silver" / "orders")
    assert lake.store(ORDERS).folder == tmp_path / "silver" / "orders"
    assert lake.client.delta_rs == {}


def test_options_reach_delta_rs_under_its_names(tmp_path: Path) -> None:
    storage = (
        '{endpoint: "http://localhost:9000", access_key_id: a, secret_access_key: "${env:KEY}"}'
    )
    lake = lake_of(tmp_path, "s3://bucket/lake", storage)
    assert lake.client.delta_rs == {
        "aws_endpoint": "http://localhost:9000",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "of-env",
        "allow_http": "true",
    }
    assert "of-env" not in repr(lake)
    azure = lake_of(
        tmp_path, "abfss://container@account.dfs.core.windows.net/lake", "{account_key: x}"
    )
    assert azure.client.delta_rs == {
        "azure_storage_account_key": "x",
        "azure_storage_account_name": "account",
    }


def test_named_secrets_are_read_again_and_a_task_gets_what_is_valid_now(tmp_path: Path) -> None:
    asked = list[str]()

    def secrets(scope: str, key: str) -> str:
        asked.append(f"{scope}/{key}")
        return f"{key}-{len(asked)}"

    storage = '{region: r, access_key_id: id, secret_access_key: "${secret:s/key}"}'
    lake = lake_of(tmp_path, "s3://bucket/lake", storage, secrets)
    assert asked == []
    assert lake.client.now == {"region": "r", "access_key_id": "id", "secret_access_key": "key-1"}
    given: Client = pickle.loads(pickle.dumps(lake.client))
    assert given.now == {"region": "r", "access_key_id": "id", "secret_access_key": "key-2"}
    assert given.renewed is None
    assert lake.client.renewed is not None
    told = _Renewing(lake.client.renewed)()
    until = told.pop("expires_at")
    assert told == {"access_key_id": "id", "secret_access_key": "key-3"}
    assert 0 < (until - datetime.now(timezone.utc)).total_seconds() <= 300
