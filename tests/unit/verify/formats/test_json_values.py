"""Single JSON values become the canonical values of their columns, or are refused."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verify.formats.from_json.reader import reader
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, Undecodable

pytestmark = pytest.mark.unit

UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])


def decoded(kind: pa.DataType, text: str) -> Any:
    return reader(pa.schema([("c", kind)]), ["c"])(b'{"c":' + text.encode() + b"}")[0]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.int64(), "9223372036854775807", 2**63 - 1),
        (pa.int64(), "null", None),
        (pa.int8(), "200", -56),
        (pa.float64(), "1", 1.0),
        (pa.float64(), '"-Infinity"', float("-inf")),
        (pa.float64(), "1e400", float("inf")),
        (pa.float64(), "1" + "0" * 400, float("inf")),
        (pa.float64(), "-1" + "0" * 400, float("-inf")),
        (pa.float32(), "0.1", struct.unpack("f", struct.pack("f", 0.1))[0]),
        (pa.float32(), "1e300", float("inf")),
        (pa.string(), '"é"', "é"),
        (pa.string(), "1.50", "1.5"),
        (pa.string(), "1e400", '"Infinity"'),
        (pa.string(), "-INF", '"-Infinity"'),
        (pa.string(), "1e7", "1.0E7"),
        (pa.string(), "0.00012", "1.2E-4"),
        (pa.string(), "'a\\'b'", "a'b"),
        (pa.float64(), "-Infinity", float("-inf")),
        (pa.float32(), "1.00000017881393432617187500001", 1.0000002384185791),
        (pa.date32(), '"7"', 7),
        (pa.date32(), '"GMT1970-01-02"', 1),
        (UTC, "9223372036854775807", -1_000_000),
        (pa.binary(), '" aGk=  aGk="', b"hihi"),
        (pa.map_(pa.string(), pa.int64()), '{"a":1,"a":2}', [("a", 1), ("a", 2)]),
        (pa.string(), "15", "15"),
        (pa.string(), "true", "true"),
        (pa.string(), r'"\ud800"', "?"),
        (pa.bool_(), "false", False),
        (pa.decimal128(5, 2), "1.005", Decimal("1.01")),
        (pa.decimal128(5, 2), '"-1.005"', Decimal("-1.01")),
        (pa.decimal128(5, 2), "7", Decimal("7.00")),
        (pa.date32(), '"1970-01-02"', 1),
        (UTC, "3", 3_000_000),
        (UTC, '"1970-01-01T00:00:01Z"', 1_000_000),
        (pa.binary(), '"aGk="', b"hi"),
        (pa.list_(pa.int32()), "[1,null]", [1, None]),
        (pa.map_(pa.string(), pa.int64()), '{"a":1}', [("a", 1)]),
        (STRUCT, '{"y":"q"}', {"x": None, "y": "q"}),
    ],
)
def test_a_json_value_becomes_the_value_of_its_column(
    kind: pa.DataType, text: str, expected: object
) -> None:
    assert decoded(kind, text) == expected


def test_text_made_from_an_object_is_equal_to_each_text_of_the_same_values() -> None:
    found = decoded(pa.string(), '{"a":1.50, "b":["\\u00e9", NaN]}')
    assert str(found) == '{"a":1.5,"b":["é","NaN"]}'
    assert found == '{"a": 1.5, "b": ["é", "NaN"]}'
    for other in ('{"a":1.51,"b":["é","NaN"]}', '{"a":1.5,"b":["é"]}', "1.5", "", "{", "x"):
        assert found != other
    assert {"x": [found]} == {"x": ['{"a":1.5,"b":["é","NaN"]}']}
    assert {"x": [found]} != {"x": ["another"]}


@pytest.mark.parametrize(
    ("kind", "text"),
    [(UTC, '"10:00"'), (pa.date32(), '"-12345678"'), (UTC, '"2026-01-01 10:00:00 CST"')],
)
def test_a_value_that_only_spark_can_tell_is_not_verifiable(kind: pa.DataType, text: str) -> None:
    assert decoded(kind, text) is NOT_VERIFIABLE


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), "9223372036854775808"),
        (pa.int64(), '"1"'),
        (pa.int64(), "1.0"),
        (pa.int64(), "true"),
        (pa.float64(), '"x"'),
        (pa.bool_(), "1"),
        (pa.decimal128(5, 2), "1000"),
        (pa.decimal128(5, 2), '"x"'),
        (UTC, "1.5"),
        (NTZ, "1"),
        (NTZ, '"2026-01-01T00:00:00Z"'),
        (STRUCT, "[]"),
        (pa.list_(pa.int32()), "{}"),
        (pa.map_(pa.string(), pa.int64()), "[]"),
        (pa.binary(), '"a"'),
        (pa.binary(), '"aGk"'),
        (pa.binary(), '"aG k="'),
        (pa.float64(), '"INF"'),
        (pa.decimal128(5, 2), "NaN"),
        (pa.decimal128(5, 2), '"1_0"'),
        (UTC, '"2026-01-01T10:00Z"'),
        (UTC, '"2026-01-01T"'),
        (UTC, '"294248-01-01"'),
        (pa.date32(), '"7 "'),
        (pa.date32(), "5"),
        (pa.uint64(), '"no such column type"'),
    ],
)
def test_a_value_that_does_not_fit_is_refused(kind: pa.DataType, text: str) -> None:
    with pytest.raises(Undecodable):
        decoded(kind, text)
