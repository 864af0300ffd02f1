"""Batches of rows become canonical values, coordinates and tuples."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.verification.tables.ports import (
    Unreadable,
    canonical,
    coordinates,
    row_field,
    schema_of,
    tuples,
    type_of,
)

pytestmark = pytest.mark.unit

STAMP = datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
STRUCT = pa.struct([("at", pa.timestamp("us", tz="UTC")), ("text", pa.string_view())])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.timestamp("us", tz="UTC"), STAMP, 1_000_000),
        (pa.timestamp("us"), STAMP.replace(tzinfo=None), 1_000_000),
        (pa.date32(), date(1970, 1, 3), 2),
        (pa.string_view(), "x", "x"),
        (pa.binary_view(), b"x", b"x"),
        (pa.decimal128(5, 2), Decimal("1.50"), Decimal("1.50")),
        (STRUCT, {"at": STAMP, "text": "x"}, {"at": 1_000_000, "text": "x"}),
        (pa.list_(pa.date32()), [date(1970, 1, 3), None], [2, None]),
        (pa.large_list(pa.date32()), [date(1970, 1, 3)], [2]),
        (pa.map_(pa.string(), pa.date32()), [("a", date(1970, 1, 3))], [("a", 2)]),
    ],
)
def test_python_values_are_the_canonical_ones(
    kind: pa.DataType, value: object, expected: object
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value, None], kind)], ["c"])
    assert canonical(batch).column("c").to_pylist() == [expected, None]


def test_rows_are_split_by_partition_and_those_without_coordinates_are_counted() -> None:
    rows: list[tuple[Any, ...]] = [
        ("b", 0, 7),
        ("a", 1, 3),
        (None, 0, 1),
        ("b", 0, 5),
        ("a", None, 2),
        ("a", 1, None),
        ("a", 0, 9),
    ]
    names = ("topic", "partition", "offset")
    columns = [pa.array(list(each)) for each in zip(*rows, strict=True)]
    flat = pa.RecordBatch.from_arrays(columns, names)
    found, unknown = coordinates(flat)
    assert unknown == 3
    by_partition = {each.partition: (each.rows.tolist(), each.offsets.tolist()) for each in found}
    assert by_partition == {
        ("a", 0): ([6], [9]),
        ("a", 1): ([1], [3]),
        ("b", 0): ([0, 3], [7, 5]),
    }


def test_columns_are_taken_in_the_order_asked_for() -> None:
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": 2, "s": {"x": 3}}])
    assert tuples(batch, ["b", "a"]) == [(2, 1)]
    assert row_field(batch, "s", "x").to_pylist() == [3]


# Columns by their SQL text: the Arrow types that delta-rs gives for the same columns


@pytest.mark.parametrize("text", ["VARIANT", "ARRAY<VARIANT>", "DECIMAL(12", "INT INT", ""])
def test_an_unknown_type_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable, match="verify does not know the type"):
        type_of(text)


EVERY = (
    "a BOOLEAN, b BYTE, c SMALLINT, d INT, e LONG, f FLOAT, g DOUBLE, h STRING, i BINARY, j DATE,"
    " k TIMESTAMP, l TIMESTAMP_NTZ, m DECIMAL(12,2), n ARRAY<STRUCT<x: INT, `y-z`: DATE>>,"
    " o MAP<STRING, ARRAY<DECIMAL(3,1)>>, p STRUCT<q: STRUCT<r: BIGINT>, s: STRING>"
)


def test_every_type_that_a_schema_may_have_is_known() -> None:
    inner = pa.struct([("x", pa.int32()), ("y-z", pa.date32())])
    assert schema_of(parse_columns(EVERY)) == pa.schema(
        [
            ("a", pa.bool_()),
            ("b", pa.int8()),
            ("c", pa.int16()),
            ("d", pa.int32()),
            ("e", pa.int64()),
            ("f", pa.float32()),
            ("g", pa.float64()),
            ("h", pa.string()),
            ("i", pa.binary()),
            ("j", pa.date32()),
            ("k", pa.timestamp("us", tz="UTC")),
            ("l", pa.timestamp("us")),
            ("m", pa.decimal128(12, 2)),
            ("n", pa.list_(inner)),
            ("o", pa.map_(pa.string(), pa.list_(pa.decimal128(3, 1)))),
            ("p", pa.struct([("q", pa.struct([("r", pa.int64())])), ("s", pa.string())])),
        ]
    )
