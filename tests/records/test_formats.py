"""Records of each format land, bad ones are in quarantine, and the proof reads the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermouth.local.registry import LocalRegistry
from tests.lake import Lake
from tests.records.conftest import Registering, avro, framed, record
from tests.unit.formats.protobuf.compiled import Compiled

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

ORDERS = "id BIGINT, city STRING"
FIRST = record(("id", "long"), ("city", "string"))
WIDER = record(("city", ["null", "string"]), ("note", "string"), ("id", "int"))
NEWER = {"id": 2, "city": None, "note": "new"}
OTHER = record(("id", "string"), ("city", "string"))
STRANGE = record(("x", "long"))
PROTO = """
syntax = "proto3";
package shop;
message Place { string city = 1; }
message Order { int64 id = 1; string city = 2; Place place = 3; }
"""


@dataclass(frozen=True)
class Case:
    """Records of one topic: the good ones with their rows, the bad ones with their codes."""

    source: Mapping[str, Any]
    good: Sequence[tuple[bytes, Any]]
    bad: Sequence[tuple[bytes, str]]
    schema: str = ORDERS


def case(kind: str, registering: Registering, folder: Path) -> Case:
    name = f"{kind}-value"
    good: list[tuple[bytes, Any]]
    bad: list[tuple[bytes, str]]
    if kind == "avro":
        schemas = (FIRST, WIDER, OTHER, STRANGE)
        first, wider, other, strange = (
            registering.avro(f"{name}-{n}", s) for n, s in enumerate(schemas)
        )
        one = avro(FIRST)({"id": 1, "city": "Rome"})
        two = avro(WIDER)(NEWER)
        good = [(framed(first, one), (1, "Rome")), (framed(wider, two), (2, None))]
        bad = [
            (one, "RM611"),
            (framed(first, one[:-1]), "RM603"),
            (framed(999_999, one), "RM612"),
            (framed(other, avro(OTHER)({"id": "1", "city": "x"})), "RM613"),
            (framed(strange, avro(STRANGE)({"x": 1})), "RM610"),
        ]
        return Case({"format": "avro"}, good, bad)
    if kind == "avro of a file":
        (folder / "order.avsc").write_text(json.dumps(FIRST))
        one = avro(FIRST)({"id": 1, "city": "Rome"})
        source = {"format": "avro", "schema_file": "order.avsc"}
        return Case(source, [(one, (1, "Rome"))], [(one + b"\0", "RM603"), (b"\2", "RM603")])
    if kind == "protobuf":
        number, compiled = registering.protobuf(name, PROTO), Compiled(PROTO)
        order = compiled.message("shop.Order")(id=1, city="Rome").SerializeToString()
        good = [
            (framed(number, b"\2\2" + order), (1, "Rome")),
            (
                framed(
                    number, b"\0" + compiled.message("shop.Place")(city="B").SerializeToString()
                ),
                (None, "B"),
            ),
        ]
        bad = [
            (order, "RM611"),
            (framed(number, b"\2\x08" + order), "RM613"),
            (framed(number, b"\2\2" + order[:-1]), "RM603"),
        ]
        return Case({"format": "protobuf"}, good, bad)
    if kind == "protobuf of a file":
        (folder / "order.proto").write_text(PROTO)
        order = Compiled(PROTO).message("shop.Order")(id=1, city="Rome").SerializeToString()
        source = {"format": "protobuf", "schema_file": "order.proto", "message": "shop.Order"}
        return Case(source, [(order, (1, "Rome"))], [(order[:-1], "RM603")])
    if kind == "json, framed":
        good = [(framed(7, b'{"id":1,"city":"Rome"}'), (1, "Rome"))]
        bad = [(b'{"id":1}', "RM611"), (framed(7, b"{"), "RM603"), (framed(7, b""), "RM602")]
        return Case({"format": "json", "framing": "confluent"}, good, bad)
    if kind == "csv":
        good = [(b'1,"Ro,me"', (1, "Ro,me")), (b"2,", (2, None)), (b'3,""\r\n', (3, ""))]
        bad = [(b"1", "RM603"), (b"x,Rome", "RM603"), (b'1,"Rome', "RM603")]
        return Case({"format": "csv"}, good, bad)
    if kind == "string":
        return Case({"format": "string"}, [(b"7", (7,))], [(b"x", "RM603")], "id BIGINT")
    assert kind == "raw"
    return Case({"format": "raw"}, [(b"\xff\0", (b"\xff\0",))], [(b"", "RM602")], "body BINARY")


KINDS = [
    "avro",
    "avro of a file",
    "protobuf",
    "protobuf of a file",
    "json, framed",
    "csv",
    "string",
    "raw",
]


@pytest.mark.parametrize("kind", KINDS)
def test_good_records_land_and_bad_ones_are_told(
    kind: str, lake: Lake, registering: Registering, rivermouth_spark: SparkSession
) -> None:
    its, topic = case(kind, registering, lake.folder), kind.replace(" ", "-").replace(",", "")
    lake.topic(topic)
    table = f"bronze.{topic.replace('-', '_')}"
    source = {"topics": [topic], **its.source}
    lake.configure(p={"source": source, "schema": its.schema, "target": {"table": table}})
    lake.produce(topic, [(None, value, 0) for value, _ in (*its.good, *its.bad)])

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].error is None
    rows = [tuple(v for n, v in each.items() if n != "_kafka") for each in lake.rows(table)]
    assert sorted(rows, key=repr) == sorted((row for _, row in its.good), key=repr)
    bad = sorted(lake.rows(f"{table}_quarantine"), key=lambda each: each["offset"])
    assert [(each["value"], each["code"]) for each in bad] == [*its.bad]
    proved = lake.command("verify", "--strict")
    # Of a schema that the registry does not have, nothing can be told.
    assert proved.returncode == (3 if kind == "avro" else 0), proved.stdout + proved.stderr
    assert lake.command("verify").returncode == 0


def test_the_number_of_a_schema_may_stand_in_a_header(
    lake: Lake, registering: Registering, rivermouth_spark: SparkSession
) -> None:
    """By files, and by Spark's writer; a tombstone needs none, and a row may have its headers."""
    lake.topic("headed")
    number = registering.avro("headed-value", FIRST).to_bytes(8, "big")
    source = {"topics": ["headed"], "format": "avro", "framing": "header"}
    plain = {"source": source, "schema": ORDERS}
    lake.configure(
        files={**plain, "target": {"table": "bronze.headed"}},
        spark={
            "source": {**source, "metadata": ["headers"]},
            "schema": ORDERS,
            "target": {"table": "bronze.by_spark", "commit": "spark"},
        },
    )
    one, id_ = avro(FIRST)({"id": 1, "city": "Rome"}), "apicurio.value.contentId"
    producer = Producer({"bootstrap.servers": lake.servers})
    producer.produce("headed", one, headers=[("x", b"1"), (id_, number)])
    producer.produce("headed", one, headers=[("x", b"1")])
    producer.produce("headed", framed(1, one), headers=[(id_, b"\0" * 3 + number)])
    producer.produce("headed", None)
    assert producer.flush(60) == 0

    heard = lake.run(rivermouth_spark, "files", "spark")

    assert [each.error for each in heard.ends] == [None, None]
    for table in ("headed", "by_spark"):
        assert [(e["id"], e["city"]) for e in lake.rows(f"bronze.{table}")] == [(1, "Rome")]
        bad = lake.rows(f"bronze.{table}_quarantine")
        assert sorted((e["offset"], e["code"]) for e in bad) == [(1, "RM611"), (2, "RM611")]
    proved = lake.command("verify", "--strict")
    assert proved.returncode == 0, proved.stdout + proved.stderr


@pytest.mark.thorough
def test_a_registry_that_is_away_is_waited_for_and_what_is_known_needs_none(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("away")
    one, two = avro(FIRST)({"id": 1, "city": "Rome"}), avro(WIDER)(NEWER)
    retry = {"for": "2s", "from": "500ms"}
    pipeline = {
        "source": {"topics": ["away"], "format": "avro"},
        "schema": ORDERS,
        "target": {"table": "bronze.away"},
        "retry": retry,
    }

    def ids() -> list[int]:
        assert not lake.path("bronze.away_quarantine").exists()
        return sorted(each["id"] for each in lake.rows("bronze.away"))

    with LocalRegistry() as registry:
        options = {"url": registry.url, "max.retries": 0}
        away = replace(lake, settings={"schema_registry": options})
        away.configure(p=pipeline)
        known = Registering(registry.url).avro("away-value", FIRST)
        away.produce("away", [(None, framed(known, one), 0)])
        assert away.run(rivermouth_spark, "p").ends[0].error is None
        registry.stop()

        away.produce("away", [(None, framed(known, one), 0)])
        assert away.run(rivermouth_spark, "p").ends[0].error is None
        assert ids() == [1, 1]

        away.produce("away", [(None, framed(known + 1, two), 0)])
        heard = away.run(rivermouth_spark, "p")
        assert heard.ends[0].error is not None
        assert heard.ends[0].error.code == "RM305"
        assert heard.ends[0].retries > 1
        assert ids() == [1, 1]

        registry.start()  # it is empty
        again = Registering(registry.url)
        numbers = again.avro("away-value", FIRST), again.avro("other", WIDER)
        assert numbers == (known, known + 1)
        assert away.run(rivermouth_spark, "p").ends[0].error is None
        assert ids() == [1, 1, 2]


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_a_tombstone_names_its_row_by_a_key_with_a_schema(
    kind: str, lake: Lake, registering: Registering, rivermouth_spark: SparkSession
) -> None:
    """Values are plain JSON: each of the two may have a format of its own."""
    topic = f"keys-{kind}"
    lake.topic(topic)
    if kind == "avro":
        schema = record(("id", "long"))
        number = registering.avro(f"{topic}-key", schema)
        keys = [framed(number, avro(schema)({"id": n})) for n in range(3)]
    else:
        number, compiled = registering.protobuf(f"{topic}-key", PROTO), Compiled(PROTO)
        made = [compiled.message("shop.Order")(id=n).SerializeToString() for n in range(3)]
        keys = [framed(number, b"\2\2" + each) for each in made]
    table = f"silver.keys_{kind}"
    lake.configure(
        p={
            "source": {"topics": [topic], "format": "json", "key": kind},
            "schema": ORDERS,
            "target": {"table": table, "mode": "upsert", "keys": ["id"]},
        }
    )
    values = [(key, b'{"id": %d}' % n, 0) for n, key in enumerate(keys)]
    lake.produce(topic, [*values, (keys[1], None, 0), (keys[2] + b"\0", None, 0)])

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].error is None
    assert sorted(each["id"] for each in lake.rows(table)) == [0, 2]
    assert [each["code"] for each in lake.rows(f"{table}_quarantine")] == ["RM604"]
    proved = lake.command("verify", "--strict")
    assert proved.returncode == 0, proved.stdout + proved.stderr


def test_a_table_gets_the_columns_of_the_newest_schema_and_keeps_them(
    lake: Lake, registering: Registering, rivermouth_spark: SparkSession
) -> None:
    lake.topic("unsaid")
    lake.write(
        p={
            "source": {"topics": ["unsaid"], "format": "avro"},
            "target": {"table": "silver.unsaid", "mode": "upsert", "keys": ["id"]},
        }
    )
    refused = lake.command("validate")
    assert refused.returncode == 2
    assert "has no columns: the registry has no subject unsaid-value — write schema" in (
        refused.stderr
    )

    registering.avro("unsaid-value", FIRST)
    number = registering.avro("unsaid-value", WIDER)
    lake.produce("unsaid", [(None, framed(number, avro(WIDER)(NEWER)), 0)])
    assert lake.command("doctor").returncode == 0
    assert lake.command("run", "--once", spark=rivermouth_spark).returncode == 0
    [row] = lake.rows("silver.unsaid")
    row.pop("_kafka")
    assert row == {"city": None, "note": "new", "id": 2}

    # Neither a newer schema nor a registry that is away changes anything.
    with_more = record(("id", "int"), ("note", "string"), ("more", "string"))
    newest = registering.avro("unsaid-other", with_more)
    value = avro(with_more)({"id": 3, "note": "x", "more": "y"})
    lake.produce("unsaid", [(None, framed(newest, value), 0)])
    assert lake.command("run", "--once", spark=rivermouth_spark).returncode == 0
    away = replace(lake, settings={"schema_registry": {"url": "http://127.0.0.1:9"}})
    away.write(
        p={
            "source": {"topics": ["unsaid"], "format": "avro"},
            "target": {"table": "silver.unsaid", "mode": "upsert", "keys": ["id"]},
        }
    )
    assert away.command("status").returncode == 0
    assert sorted(each["id"] for each in lake.rows("silver.unsaid")) == [2, 3]
    assert {*lake.rows("silver.unsaid")[0]} == {"city", "note", "id", "_kafka"}
