"""Message keys and headers in ``_kafka``: every way to land and to read them, and their proof."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

import rivermouth
from rivermouth.config import load
from rivermouth.errors import SchemaDiffers
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.verification import Kind, PipelineProof, Unchecked, verify
from tests.faults.outcomes import went_well
from tests.kafka import raw_headers
from tests.kafka.replaying import problems, replay
from tests.lake import (
    Lake,
    append_pipeline,
    bid,
    insert_pipeline,
    order,
    through_spark,
    upsert_pipeline,
)
from tests.pages import page, section, snippets

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

Told = tuple[bytes | None, Any]
BOTH = ["key", "headers"]
TOLD: list[Told] = [
    (None, None),
    (b"", [("trace", b"\xff\x00"), ("b", b"2"), ("trace", b"1")]),
    (b"\xff\x00k", [("none", None), ("empty", b""), ("", b"x"), ("é", b"")]),
    (b"4", None),
]
"""Keys and headers: absent, empty, of any bytes; names that repeat, values that are null."""


def produce(servers: str, topic: str, values: list[bytes], told: list[Told]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value, (key, headers) in zip(values, told, strict=True):
        producer.produce(topic, value, key, partition=0, headers=headers or [])
    producer.flush()


def held(lake: Lake, table: str, column: str) -> dict[Any, Told]:
    """Key and headers of each row, by the value of a column."""
    reader = QueryBuilder().register("t", DeltaTable(str(lake.path(table))))
    rows = pa.table(reader.execute(f"SELECT {column} AS id, _kafka FROM t").read_all()).to_pylist()
    assert [*rows[0]["_kafka"]] == ["topic", "partition", "offset", "timestamp", *BOTH]
    lists = {row["id"]: row["_kafka"] for row in rows}
    return {
        each: (
            kafka["key"],
            kafka["headers"] and [(h["key"], h["value"]) for h in kafka["headers"]],
        )
        for each, kafka in lists.items()
    }


def shown_on_the_page(session: SparkSession, lake: Lake, table: str) -> dict[int, bytes | None]:
    """The header ``trace`` of each row, as docs/tables.md asks for it."""
    [shown] = snippets(section(page("tables"), "## Message key and headers"), "sql")
    asked = shown.replace("/data/lake/bronze/bids", str(lake.path(table)))
    rows = session.sql(f"SELECT auction, trace FROM ({asked})").collect()
    return {row["auction"]: row["trace"] and bytes(row["trace"]) for row in rows}


def spoil(
    session: SparkSession, lake: Lake, table: str, field: str, value: str, where: str
) -> None:
    """Somebody writes another value into a field of ``_kafka``."""
    at = f"delta.`{lake.path(table)}`"
    session.sql(f"UPDATE {at} SET _kafka.{field} = {value} WHERE {where}")


def proofs(lake: Lake) -> list[PipelineProof]:
    return [*verify(load(lake.file), strict=True).pipelines]


WAYS = {
    "files": (append_pipeline, "bronze.meta_files", {}),
    "spark": (through_spark, "bronze.meta_spark", {}),
    "rated": (through_spark, "bronze.meta_rated", {"max_rate_per_partition": 100}),
    "insert": (insert_pipeline, "first.meta_insert", {}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", [*WAYS])
def test_keys_and_headers_stand_as_kafka_has_them_and_a_false_one_is_found(
    lake: Lake, rivermouth_spark: SparkSession, way: str
) -> None:
    make, table, settings = WAYS[way]
    topic = f"meta-{way}"
    lake.topic(topic)
    lake.configure(p=make(topic, metadata=BOTH, **settings))
    produce(lake.servers, topic, [*map(bid, range(4)), b"oops"], [*TOLD, (b"bad", [("a", b"b")])])

    went_well(lake.run(rivermouth_spark, "p"))

    assert held(lake, table, "auction") == dict(enumerate(TOLD))
    newest = DeltaTable(str(lake.path(table))).history(1)[0]
    assert newest["engineInfo"].startswith("Apache-Spark") is (make is through_spark)
    traces = shown_on_the_page(rivermouth_spark, lake, table)
    assert traces == {0: None, 1: b"\xff\x00", 2: None, 3: None}
    [bad] = lake.rows(f"{table}_quarantine")
    assert (bad["code"], bad["key"]) == ("RM603", b"bad")
    [proof] = proofs(lake)
    assert proof.ok, proof.problems
    spoil(rivermouth_spark, lake, table, "key", "X'00'", "auction = 3")
    spoil(rivermouth_spark, lake, table, "headers", "array()", "auction = 0")
    spoil(rivermouth_spark, lake, table, "headers", "reverse(_kafka.headers)", "auction = 1")
    [wrong] = verify(load(lake.file)).pipelines
    assert wrong.counts[Kind.DIFFERENT] == 3
    found = sorted((each.split(": ")[0][-2:], each.split()[-1]) for each in wrong.problems)
    assert found == [("@0", "_kafka.headers"), ("@1", "_kafka.headers"), ("@3", "_kafka.key")]


@pytest.mark.thorough
def test_the_row_of_a_key_has_the_metadata_of_its_newest_record(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic, table = "meta-upsert", "silver.meta_upsert"
    lake.topic(topic)
    lake.configure(p=upsert_pipeline(topic, metadata=BOTH))
    produce(lake.servers, topic, [order(each, "new", 1) for each in range(4)], TOLD)
    lake.run(rivermouth_spark, "p")
    # The first two rows take the metadata of the last two records, and the fourth goes.
    later: list[Told] = [TOLD[2], TOLD[1], (b"3", [("why", b"gone")])]
    values: list[Any] = [order(0, "paid", 2), order(1, "paid", 2), None]
    produce(lake.servers, topic, values, later)
    went_well(lake.run(rivermouth_spark, "p"))

    assert held(lake, table, "order_id") == {0: TOLD[2], 1: TOLD[1], 2: TOLD[2]}
    [proof] = proofs(lake)
    assert proof.ok, proof.problems
    spoil(rivermouth_spark, lake, table, "key", "null", "order_id = 1")
    spoil(rivermouth_spark, lake, table, "headers", "null", "order_id = 2")
    [wrong] = verify(load(lake.file)).pipelines
    assert wrong.counts[Kind.DIFFERENT] == 2


@pytest.mark.thorough
def test_metadata_that_come_later_are_null_in_the_rows_from_before(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    a, u = append_pipeline("later-a"), upsert_pipeline("later-u")
    tables = {"a": "bronze.later_a", "u": "silver.later_u"}
    lake.configure(a=a, u=u)
    for topic in ("later-a", "later-u"):
        lake.topic(topic)
    produce(lake.servers, "later-a", [bid(0), bid(1)], TOLD[1:3])
    produce(lake.servers, "later-u", [order(0, "x", 1), order(1, "x", 1)], TOLD[1:3])
    lake.run(rivermouth_spark, "a", "u")
    with_them = {
        name: {**each, "source": {**each["source"], "metadata": BOTH}}
        for name, each in {"a": a, "u": u}.items()
    }
    lake.configure(**with_them)
    for end in lake.run(rivermouth_spark, "a", "u").ends:
        assert isinstance(end.error, SchemaDiffers)
        statement = end.error.remedy.partition("there: ")[2]
        rivermouth_spark.sql(statement)
    produce(lake.servers, "later-a", [bid(2)], TOLD[1:2])
    produce(lake.servers, "later-u", [order(1, "y", 2)], TOLD[3:])
    went_well(lake.run(rivermouth_spark, "a", "u"))

    assert held(lake, tables["a"], "auction") == {0: (None, None), 1: (None, None), 2: TOLD[1]}
    assert held(lake, tables["u"], "order_id") == {0: (None, None), 1: TOLD[3]}
    for proof in proofs(lake):
        assert proof.ok, proof.problems
    # A row from before that has them now is not what its entry wrote.
    spoil(rivermouth_spark, lake, tables["a"], "key", "X''", "auction = 0")
    counts = [each.counts[Kind.DIFFERENT] for each in verify(load(lake.file)).pipelines]
    assert counts == [1, 0]

    lake.configure(a=a, u=u)
    for end in lake.run(rivermouth_spark, "a", "u").ends:
        assert isinstance(end.error, SchemaDiffers)
        assert "source: {metadata: [key, headers]}" in end.error.remedy


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

    went_well(lake.run(rivermouth_spark, "p"))

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
    raw_headers.produce(lake.servers, topic, bid(0), [b"a\xffb", b"c"])
    raw_headers.produce(lake.servers, topic, bid(1), [b"a\0b", b"c"])

    lake.run(rivermouth_spark, "p")

    told = held(lake, "bronze.told_odd", "auction")
    assert told == {
        0: (None, [("a\ufffdb", b"v"), ("c", b"v")]),
        1: (None, [("a\0b", b"v"), ("c", b"v")]),
    }
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.left) == (True, {Unchecked.VALUES: 1})
