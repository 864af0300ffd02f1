"""Several pipelines of one run on one table: each follows the commits of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verification import verify
from tests.faults.outcomes import went_well
from tests.lake import Lake, append_pipeline, bid, order, retrying, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BAD = b"bad"


def into(table: str, pipeline: dict[str, Any]) -> dict[str, Any]:
    """The pipeline with another table, and a minute for commits that are in its way."""
    return retrying({**pipeline, "target": {**pipeline["target"], "table": table}}, 60)


def engines(lake: Lake, table: str) -> set[str]:
    """Who made the commits after the first one, which created the table."""
    log = sorted((lake.warehouse / table / "_delta_log").glob("*.json"))[1:]
    lines = [json.loads(line) for each in log for line in each.read_text("utf-8").splitlines()]
    return {each["commitInfo"]["engineInfo"] for each in lines if "commitInfo" in each}


def proved(lake: Lake, *, strict: bool) -> None:
    found = verify(load(lake.file), strict=strict)
    assert [each.problems for each in found.pipelines] == [()] * len(found.pipelines)
    assert found.ok


def test_two_pipelines_add_rows_to_one_table_as_files(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """The batches of one are small, those of the other are large; both have bad records."""
    for name, count, bad_each in (("both-a", 300, 7), ("both-b", 3000, 1000)):
        lake.topic(name)
        values = [BAD if n % bad_each == 3 else bid(n) for n in range(count)]
        lake.produce(name, [(None, each, 0) for each in values])
    lake.configure(
        p=into("bronze.both", append_pipeline("both-a", max_offsets_per_trigger=10)),
        q=into("bronze.both", append_pipeline("both-b", max_offsets_per_trigger=500)),
    )
    found = went_well(lake.run(rivermouth_spark, "p", "q"))

    assert {each.pipeline: each.commits for each in found.ends} == {"p": 30, "q": 6}
    assert found.retries == []
    rows = [row["_kafka"] for row in lake.rows("bronze.both")]
    places = {(each["topic"], each["offset"]) for each in rows}
    assert len(rows) == len(places) == 300 - 43 + 3000 - 3
    assert engines(lake, "bronze/both") == {"rivermouth"}
    proved(lake, strict=True)


def test_of_two_pipelines_that_write_one_key_the_last_by_order_by_wins(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    keys, changes = 10, 200
    last: dict[int, tuple[int, str]] = {}
    for name, step in (("keys-a", 7), ("keys-b", 11)):
        lake.topic(name)
        sent = []
        for n in range(changes):
            second = (n * step) % 211 * 2 + (name == "keys-b")  # no two alike
            key = n % keys
            sent.append((b"%d" % key, order(key, f"{name} {n}", second), 0))
            last[key] = max(last.get(key, (-1, "")), (second, f"{name} {n}"))
        lake.produce(name, sent)
    lake.configure(
        p=into("silver.keys", upsert_pipeline("keys-a", max_offsets_per_trigger=10)),
        q=into("silver.keys", upsert_pipeline("keys-b", max_offsets_per_trigger=25)),
    )
    found = went_well(lake.run(rivermouth_spark, "p", "q"))

    assert {each.pipeline: each.commits for each in found.ends} == {"p": 20, "q": 8}
    stands = {row["order_id"]: row["status"] for row in lake.rows("silver.keys")}
    assert stands == {key: status for key, (_, status) in last.items()}
    assert engines(lake, "silver/keys") == {"rivermouth"}
    proved(lake, strict=False)  # of rows that the other one wrote each proof says nothing
