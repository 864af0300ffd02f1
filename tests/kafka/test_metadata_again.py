"""Message keys and headers where records are read again, in own code, and under odd names."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import rivermouth
from rivermouth.config import load
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.verify import Kind, Unchecked, verify
from tests.kafka import odd_headers
from tests.kafka.replaying import problems, replay
from tests.kafka.test_metadata import BOTH, TOLD, held, produce, spoil
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.thorough
def test_records_that_are_read_again_have_them(lake: Lake, rivermouth_spark: SparkSession) -> None:
    topic = "told-again"
    lake.topic(topic)
    config = lake.configure(p=append_pipeline(topic, metadata=BOTH))
    produce(lake.servers, topic, [*map(bid, range(4))], TOLD)
    lake.run(rivermouth_spark, "p")
    ranges = [OffsetRange(TopicPartition(topic, 0), 0, 4)]

    rows = rivermouth.read(rivermouth_spark, config, ranges, "p")
    nothing = rivermouth.read(rivermouth_spark, config, [], "p")
    assert [*nothing.schema] == [*rows.schema]
    # Rows in Arrow: Python's own rows of Spark give other types.
    read = rows.select("_kafka").toArrow().to_pylist()
    [row] = [each["_kafka"] for each in read if each["_kafka"]["offset"] == 1]
    assert row["key"] == TOLD[1][0]
    assert [(each["key"], each["value"]) for each in row["headers"]] == TOLD[1][1]

    assert replay(lake, rivermouth_spark, "earliest", into="repair.bids").written
    assert held(lake, "repair.bids", "auction") == dict(enumerate(TOLD))


@pytest.mark.thorough
def test_a_replay_in_place_puts_them_right(lake: Lake, rivermouth_spark: SparkSession) -> None:
    topic, table = "told-right", "silver.told_right"
    lake.topic(topic)
    lake.configure(p=upsert_pipeline(topic, metadata=BOTH))
    produce(lake.servers, topic, [order(each, "new", 1) for each in range(4)], TOLD)
    lake.run(rivermouth_spark, "p")
    spoil(rivermouth_spark, lake, table, "headers", "null", "order_id = 1")
    assert len(problems(lake)) == 1

    found = replay(lake, rivermouth_spark, "earliest")

    assert (found.written, found.plan.updated) == (True, 1)
    assert held(lake, table, "order_id") == dict(enumerate(TOLD))
    assert problems(lake) == []


@pytest.mark.thorough
def test_own_code_sees_them_and_a_false_one_is_found(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic, table = "told-own", "bronze.told_own"
    lake.topic(topic)
    plain = append_pipeline(topic, metadata=BOTH)
    target = {**plain["target"], "schema": "auction BIGINT, first STRING"}
    select = "auction, _kafka.headers[0].key AS first"
    lake.configure(p={**plain, "select": select, "target": target})
    produce(lake.servers, topic, [*map(bid, range(3))], TOLD[:3])

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].error is None, heard.ends[0].error
    assert held(lake, table, "auction") == dict(enumerate(TOLD[:3]))
    firsts = {row["auction"]: row["first"] for row in lake.rows(table)}
    assert firsts == {0: None, 1: "trace", 2: "none"}
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.left) == (True, {Unchecked.MADE: 3})
    spoil(rivermouth_spark, lake, table, "key", "X'01'", "auction = 2")
    [wrong] = verify(load(lake.file)).pipelines
    assert wrong.counts[Kind.DIFFERENT] == 1


@pytest.mark.thorough
def test_names_that_are_not_utf8_are_stored_as_spark_reads_them_and_left_unchecked(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic = "told-odd"
    lake.topic(topic)
    lake.configure(p=append_pipeline(topic, metadata=BOTH))
    odd_headers.produce(lake.servers, topic, bid(0), [b"a\xffb", b"c"])
    odd_headers.produce(lake.servers, topic, bid(1), [b"a\0b", b"c"])

    lake.run(rivermouth_spark, "p")

    told = held(lake, "bronze.told_odd", "auction")
    assert told == {
        0: (None, [("a\ufffdb", b"v"), ("c", b"v")]),
        1: (None, [("a\0b", b"v"), ("c", b"v")]),
    }
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.left) == (True, {Unchecked.VALUES: 1})
