"""Records that are sent to topics: the key and headers of each, and which ones name no topic."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.source.batches import header_options
from rivermouth.write.sinks import headers_of, in_order, key_of
from tests.spark.conftest import Bench, a_pipeline

pytestmark = pytest.mark.spark

COLUMNS = (
    "id BIGINT, name STRING, whole BOOLEAN, price DECIMAL(38,18), day DATE, at TIMESTAMP,"
    " here TIMESTAMP_NTZ, raw BINARY, part INT"
)
VALUE = (
    b'{"id": 7, "name": "\xc3\xa9 \\"x\\"", "whole": true, "price": 0.000000000000000001,'
    b' "day": "2026-01-02", "at": "2026-01-02T03:04:05.000006+01:00",'
    b' "here": "2026-01-02T03:04:05.000006", "raw": "/wA="}'
)

HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ((), b"read"),
        (("id",), b"7"),
        (("name",), b'\xc3\xa9 "x"'),
        (("whole",), b"true"),
        (("price",), b"0.000000000000000001"),
        (("day",), b"2026-01-02"),
        (("at",), b"2026-01-02T02:04:05.000006Z"),
        (("here",), b"2026-01-02T03:04:05.000006"),
        (("raw",), b"\xff\x00"),
        (("name", "id"), b'{"name":"\xc3\xa9 \\"x\\"","id":7}'),
        (("at", "raw"), b'{"at":"2026-01-02T02:04:05.000006Z","raw":"/wA="}'),
    ],
)
def test_a_key_is_the_text_of_a_column_or_an_object_of_several(
    bench: Bench, names: tuple[str, ...], key: bytes
) -> None:
    assert made(bench, names, VALUE) == key


@pytest.mark.parametrize(
    ("names", "key"), [(("id",), None), (("id", "name"), b'{"id":null,"name":null}')]
)
def test_a_null_column_is_a_null_key_or_a_null_in_it(
    bench: Bench, names: tuple[str, ...], key: bytes | None
) -> None:
    assert made(bench, names, b"{}") == key


@pytest.mark.parametrize(
    ("topics", "value", "code"),
    [
        (("a", "b"), b'{"name": "a"}', None),
        (("a", "b"), b'{"name": "b"}', None),
        (("a",), b'{"name": "b"}', "RM608"),
        (("a", "b"), b'{"name": "A"}', "RM608"),
        (("a", "b"), b'{"name": "a "}', "RM608"),
        (("a", "b"), b'{"name": ""}', "RM608"),
        (("a", "b"), b'{"name": null}', "RM607"),
        (("a", "b"), b'{"id": 7}', "RM607"),
        (("1.5", "b"), b'{"name": 1.50}', "RM603"),
        (("a", "b"), b'{"name": "a", "id": "x"}', "RM603"),
        (("a", "b"), b"", "RM602"),
        (("a", "b"), None, "RM601"),
    ],
)
def test_a_record_that_names_no_topic_is_bad(
    bench: Bench, topics: tuple[str, ...], value: bytes | None, code: str | None
) -> None:
    pipeline = sending(kafka=topics, topic_column="name")
    assert pipeline.format.all_reasons.get(code or "", "") or code is None
    [row] = decoder(pipeline)(bench.raw([(b"read", value, 0, 0)])).select("code").collect()
    assert row.code == code


@pytest.mark.parametrize(
    ("number", "code"), [(b"-1", "RM609"), (b"0", None), (b"7", None), (b"null", None)]
)
def test_a_record_whose_partition_is_negative_is_bad(
    bench: Bench, number: bytes, code: str | None
) -> None:
    pipeline = sending(partition_column="part")
    value = b'{"part": %s}' % number
    [row] = decoder(pipeline)(bench.raw([(b"read", value, 0, 0)])).select("code").collect()
    assert row.code == code


def header(name: str, value: bytes | None) -> dict[str, Any]:
    return {"key": name, "value": value}


IDENTIFIER = header("rm-id", b"p/t/0/3")
READ = [
    header("trace", b"\xff\x00"),
    header("rm-id", b"other/u/1/2"),
    header("RM-ID", b"kept"),
    header("trace", None),
    header("", b""),
]


@pytest.mark.parametrize(
    ("target", "read", "sent"),
    [
        ({}, None, []),
        ({"forward_headers": True}, READ, [READ[0], *READ[2:]]),
        ({"forward_headers": True}, None, []),
        ({"forward_headers": True}, [], []),
        ({"forward_headers": True}, [header("rm-id", None)], []),
        (
            {"header_columns": ("name", "at", "raw", "part")},
            None,
            [
                header("name", b'\xc3\xa9 "x"'),
                header("at", b"2026-01-02T02:04:05.000006Z"),
                header("raw", b"\xff\x00"),
            ],
        ),
        (
            {"forward_headers": True, "header_columns": ("id", "part")},
            [header("id", b"read")],
            [header("id", b"read"), header("id", b"7")],
        ),
    ],
)
def test_headers_are_those_that_were_read_then_those_of_columns_then_the_id(
    bench: Bench,
    target: dict[str, Any],
    read: list[dict[str, Any]] | None,
    sent: list[dict[str, Any]],
) -> None:
    pipeline = sending(**target)
    forwards = pipeline.target.forward_headers
    raw = bench.raw([(b"read", VALUE, 0, 3)])
    if forwards:
        given = bench.spark.createDataFrame([(read,)], HEADERS)
        raw = raw.crossJoin(given)
    rows = decoder(pipeline, headers=forwards)(raw)
    [row] = rows.select(headers_of(pipeline).alias("headers")).collect()
    found = [each.asDict() for each in row.headers]
    assert found == [*sent, IDENTIFIER]


def test_rows_of_a_partition_are_in_one_task_in_their_order(bench: Bench) -> None:
    rows = [(b"k", VALUE, number % 3, number) for number in range(300)]
    mixed = decoder(sending())(bench.raw(rows)).repartition(8, F.rand(7))

    found = in_order(mixed).select(
        F.spark_partition_id().alias("task"), "_kafka.partition", "_kafka.offset"
    )

    tasks, offsets = defaultdict(set), defaultdict(list)
    for row in found.collect():
        tasks[row.partition].add(row.task)
        offsets[row.partition].append(row.offset)
    assert [len(each) for each in tasks.values()] == [1, 1, 1]
    assert offsets == {number: [*range(number, 300, 3)] for number in range(3)}


def test_headers_are_read_and_kept_only_where_they_are_sent_on(bench: Bench) -> None:
    without, forwarding = sending(header_columns=("id",)), sending(forward_headers=True)
    assert (header_options(without), header_options(forwarding)) == (
        {},
        {"includeHeaders": "true"},
    )
    assert "headers" not in decoder(without)(bench.raw([])).columns


def sending(**target: Any) -> Pipeline:
    """A pipeline that sends records to topics."""
    target = {"mode": "send", "kafka": ("out",), "keys": (), "order_by": (), **target}
    return a_pipeline(key=None, schema=COLUMNS, **target)


def made(bench: Bench, names: tuple[str, ...], value: bytes) -> bytes | None:
    """The key that is sent for a record."""
    pipeline = sending(message_key=names)
    [row] = (
        decoder(pipeline)(bench.raw([(b"read", value, 0, 0)]))
        .select(key_of(pipeline).alias("key"))
        .collect()
    )
    return None if row.key is None else bytes(row.key)
