"""Records that name the topic and partition to which they are sent, with a key of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.faults.outcomes import refusal, went_well
from tests.kafka.test_sinks import proved, read_back
from tests.lake import Lake, retrying

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def routing(source: str, *topics: str) -> dict[str, Any]:
    return {
        "source": {"topics": [source], "format": "json"},
        "schema": "id BIGINT, `to` STRING, part INT",
        "target": {
            "kafka": [*topics],
            "topic_column": "to",
            "partition_column": "part",
            "message_key": ["id"],
        },
    }


def order(number: int, topic: str | None, part: int | None = None) -> tuple[bytes, bytes, int]:
    """A record that names its topic; even ones are in partition 0, odd ones in 1."""
    return b"read", json.dumps({"id": number, "to": topic, "part": part}).encode(), number % 2


def ids(records: list[Any]) -> dict[str, bytes]:
    """The keys of records by their ids."""
    return {dict(each.headers())["rm-id"].decode(): each.key() for each in records}


def test_each_record_gets_to_the_place_that_it_names_under_its_own_key(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("routed-in", 2)
    lake.topic("routed-a", 3)
    lake.topic("routed-b")
    lake.configure(p=routing("routed-in", "routed-a", "routed-b"))
    named = ["routed-a", "routed-b", "routed-b", "routed-a", None, "routed-in", "routed-b"]
    parts = [2, None, 0, 1, None, 0, None]
    records = [order(number, *place) for number, place in enumerate(zip(named, parts, strict=True))]
    records.append(order(7, "routed-a", -1))
    lake.produce("routed-in", records)

    went_well(lake.run(rivermouth_spark, "p"))

    in_b = read_back(lake.servers, "routed-b")
    in_a = read_back(lake.servers, "routed-a", 3)
    assert {(each.partition(), each.key()) for each in in_a} == {(2, b"0"), (1, b"3")}
    assert ids(in_a) == {
        "p/routed-in/0/0": b"0",
        "p/routed-in/1/1": b"3",
    }
    assert ids(in_b) == {
        "p/routed-in/1/0": b"1",
        "p/routed-in/0/1": b"2",
        "p/routed-in/0/3": b"6",
    }
    bad = lake.rows("rivermouth.ledger_p_quarantine")
    assert {(each["code"], bytes(each["key"]), bytes(each["value"])) for each in bad} == {
        ("RM607", *records[4][:2]),
        ("RM608", *records[5][:2]),
        ("RM609", *records[7][:2]),
    }
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["complete"], proof
    assert (proof["records"], proof["quarantined"], proof["repeated"]) == (8, 3, 0)

    lose_the_first(lake, "routed-b", in_b)
    assert proved(lake)["missing"] == 1


def lose_the_first(lake: Lake, topic: str, records: list[Any]) -> None:
    """Make a topic again, with all of its records but the first."""
    lake.delete_topic(topic)
    lake.topic(topic)
    producer = Producer({"bootstrap.servers": lake.servers})
    for each in records[1:]:
        producer.produce(topic, each.value(), each.key(), headers=each.headers())
    producer.flush()


@pytest.mark.thorough
def test_a_topic_that_does_not_exist_is_named_before_anything_is_committed(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("unrouted-in", 2)
    lake.topic("unrouted-a")
    lake.configure(p=retrying(routing("unrouted-in", "unrouted-a", "unrouted-b"), 1))
    lake.produce("unrouted-in", [order(0, "unrouted-a"), order(1, "unrouted-b")])

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code == "RM302"
    assert "unrouted-b" in str(error), error
    assert heard.commits == []
    assert read_back(lake.servers, "unrouted-a") == []
    lake.topic("unrouted-b")
    went_well(lake.run(rivermouth_spark, "p"))
    assert proved(lake)["complete"]
