"""Message keys that are no text, where ``source.key`` says that they are: they name no row."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verify import verify
from tests.faults.outcomes import went_well
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

REPLACEMENT = "\ufffd"
"""What a reader shows in place of bytes that are no UTF-8. It is a text of its own, too."""


@pytest.mark.thorough
def test_a_tombstone_whose_key_is_no_text_deletes_no_row(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("odd-keys")
    target = {"table": "silver.odd_keys", "mode": "upsert", "keys": ["id"]}
    source = {"topics": ["odd-keys"], "format": "json", "key": "string"}
    lake.configure(p={"source": source, "schema": "id STRING, n BIGINT", "target": target})
    rows = [(None, json.dumps({"id": each, "n": 1}).encode(), 0) for each in (REPLACEMENT, "a")]
    lake.produce("odd-keys", [*rows, (b"\xff", None, 0), (b"\xfe\xff", None, 0), (b"a", None, 0)])

    went_well(lake.run(rivermouth_spark, "p"))

    assert [each["id"] for each in lake.rows("silver.odd_keys")] == [REPLACEMENT]
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.problems, proof.complete, proof.quarantined) == ((), True, 0)
