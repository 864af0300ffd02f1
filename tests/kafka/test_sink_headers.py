"""Headers of records that are sent: those that were read, those of columns, and the id."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.faults.outcomes import went_well
from tests.kafka.test_sinks import proved, read_back
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

Headers = list[tuple[str, bytes | None]]
READ: list[Headers | None] = [
    [("trace", b"\xff\x00"), ("b", b"2"), ("trace", b"1"), ("none", None), ("empty", b"")],
    None,
    [("rm-id", b"first/other/0/7"), ("kept", b"x")],
    [("tenant", b"of the record that was read")],
]
TENANTS = ["blue", None, "é", "red"]


def forwarding(source: str, to: str, **settings: Any) -> dict[str, Any]:
    return {
        "source": {"topics": [source], "format": "json", **settings},
        "schema": "id BIGINT, tenant STRING",
        "target": {"kafka": to, "forward_headers": True, "header_columns": ["tenant"]},
    }


def produce(servers: str, topic: str) -> None:
    """A record with each of the headers, and a bad one."""
    producer = Producer({"bootstrap.servers": servers})
    for number, (headers, tenant) in enumerate(zip(READ, TENANTS, strict=True)):
        value = json.dumps({"id": number, "tenant": tenant})
        given: Any = headers  # the client takes None as a value, its types do not say so
        producer.produce(topic, value, b"k", partition=0, headers=given or [])
    producer.produce(topic, b"oops", b"k", partition=0, headers=[("trace", b"bad")])
    producer.flush()


def expected(source: str) -> list[Headers]:
    """The headers that are sent, in the order of the records."""
    sent: list[Headers] = []
    for number, (headers, tenant) in enumerate(zip(READ, TENANTS, strict=True)):
        made: Headers = [("tenant", tenant.encode())] if tenant is not None else []
        kept = [each for each in headers or [] if each[0] != "rm-id"]
        sent.append([*kept, *made, ("rm-id", f"p/{source}/0/{number}".encode())])
    return sent


@pytest.mark.takes_long("planned-settings1", "made-settings2")
@pytest.mark.parametrize(
    ("way", "settings"),
    [("stream", {}), ("planned", {"max_rate_per_partition": 100}), ("made", {})],
)
def test_headers_are_sent_on_in_their_order_and_the_id_is_ours(
    lake: Lake, rivermouth_spark: SparkSession, way: str, settings: dict[str, Any]
) -> None:
    source, to = f"headers-{way}", f"headers-{way}-out"
    lake.topic(source)
    lake.topic(to)
    pipeline = forwarding(source, to, **settings)
    if way == "made":
        pipeline["select"] = "id, tenant"
        pipeline["target"]["schema"] = "id BIGINT, tenant STRING"
    lake.configure(p=pipeline)
    produce(lake.servers, source)

    went_well(lake.run(rivermouth_spark, "p"))

    assert [each.headers() for each in read_back(lake.servers, to)] == expected(source)
    assert [row["code"] for row in lake.rows("rivermouth.ledger_p_quarantine")] == ["RM603"]
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["complete"] or way == "made", proof
    assert (proof["records"], proof["quarantined"], proof["repeated"]) == (5, 1, 0)
