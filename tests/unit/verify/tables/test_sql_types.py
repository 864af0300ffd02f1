"""Columns by their SQL text: the Arrow types that delta-rs gives for the same columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermouth.config import Column
from rivermouth.config.columns import parse_columns
from rivermouth.verify.tables.ports import Unreadable, schema_of, type_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BIGINT", pa.int64()),
        ("TINYINT", pa.int8()),
        ("DECIMAL(12,2)", pa.decimal128(12, 2)),
        ("TIMESTAMP", pa.timestamp("us", tz="UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("ARRAY<DECIMAL(12,2)>", pa.list_(pa.decimal128(12, 2))),
        ("MAP<STRING, ARRAY<INT>>", pa.map_(pa.string(), pa.list_(pa.int32()))),
        (
            "STRUCT<a: INT, `b:c`: MAP<STRING, DATE>, d: STRUCT<e: BINARY>>",
            pa.struct(
                [
                    ("a", pa.int32()),
                    ("b:c", pa.map_(pa.string(), pa.date32())),
                    ("d", pa.struct([("e", pa.binary())])),
                ]
            ),
        ),
    ],
)
def test_a_type_is_that_of_the_column(text: str, kind: pa.DataType) -> None:
    assert type_of(text) == kind


@pytest.mark.parametrize("text", ["VARIANT", "ARRAY<VARIANT>", "DECIMAL(12", "INT INT", ""])
def test_an_unknown_type_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable, match="verify does not know the type"):
        type_of(text)


def test_columns_keep_their_names_and_order() -> None:
    schema = schema_of([Column("b", "INT"), Column("a", "STRING")])
    assert (schema.names, schema.types) == (["b", "a"], [pa.int32(), pa.string()])


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
