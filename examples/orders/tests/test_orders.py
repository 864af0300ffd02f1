"""The pipeline of ``lake.yml`` on a real broker and a real table."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.testing import (
    LocalLake,
    Record,
    assert_exactly_once,
    kill_at,
    produce,
    run_once,
)

FILE = Path(__file__).parents[1] / "lake.yml"


def changes(status: str, second: int) -> list[Record]:
    """A change of each of ten orders, over two partitions."""
    at = f"2026-01-02T03:04:{second:02d}Z"
    return [
        (
            b"%d" % number,
            json.dumps(
                {"order_id": number, "status": status, "amount": "12.50", "updated_at": at}
            ).encode(),
            number % 2,
        )
        for number in range(10)
    ]


def test_a_killed_driver_loses_no_change_and_doubles_none(
    rivermouth_lake: LocalLake, rivermouth_spark: SparkSession
) -> None:
    rivermouth_lake.topic("orders", partitions=2)
    produce(rivermouth_lake.bootstrap_servers, "orders", changes("open", second=1))
    assert run_once(FILE, rivermouth_spark).ok

    produce(rivermouth_lake.bootstrap_servers, "orders", changes("sent", second=2))
    kill_at("P6", FILE)  # the commit is made, and the driver dies before it knows

    report = run_once(FILE, rivermouth_spark)
    assert report.ok, report
    assert report.pipelines[0].applied == 0, "the table's log told that they are in it"
    proof = assert_exactly_once(FILE)
    assert proof.pipelines[0].records == 20


def test_a_record_that_is_no_json_goes_to_quarantine(
    rivermouth_lake: LocalLake, rivermouth_spark: SparkSession
) -> None:
    rivermouth_lake.topic("orders", partitions=2)
    bad: Record = (b"7", b"this is no JSON", 0)
    produce(rivermouth_lake.bootstrap_servers, "orders", [*changes("open", second=1), bad])

    [report] = run_once(FILE, rivermouth_spark).pipelines

    assert (report.applied, report.quarantined) == (10, 1)
    assert_exactly_once(FILE)
