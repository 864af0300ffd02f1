"""The checker's own decoding: values, message keys, dates and timestamps."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verify.formats.json import KeyDecoder, RowDecoder, differences, parse_object
from rivermouth.verify.formats.json_values import UNJUDGED
from rivermouth.verify.formats.text import Undecodable, days, micros

pytestmark = pytest.mark.unit

UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")
DAY = 86_400_000_000
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])


def decoded(kind: pa.DataType, text: str) -> Any:
    value = b'{"c":' + text.encode() + b"}"
    return RowDecoder(pa.schema([("c", kind)]), ["c"]).row(parse_object(value))[0]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.int64(), "9223372036854775807", 2**63 - 1),
        (pa.int64(), "null", None),
        (pa.int8(), "200", -56),
        (pa.float64(), "1", 1.0),
        (pa.float64(), '"-Infinity"', float("-inf")),
        (pa.float64(), "1e400", float("inf")),
        (pa.float32(), "0.1", struct.unpack("f", struct.pack("f", 0.1))[0]),
        (pa.string(), '"é"', "é"),
        (pa.string(), "1.50", "1.50"),
        (pa.string(), "15", "15"),
        (pa.string(), "true", "true"),
        (pa.string(), r'"\ud800"', "?"),
        (pa.string(), '{"a":1}', UNJUDGED),
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
        (pa.uint64(), '"no such column type"'),
    ],
)
def test_a_value_that_does_not_fit_is_refused(kind: pa.DataType, text: str) -> None:
    with pytest.raises(Undecodable):
        decoded(kind, text)


@pytest.mark.parametrize("value", [b"", b"[1]", b"null", b"{", b"\xff"])
def test_what_is_no_object_is_refused(value: bytes) -> None:
    with pytest.raises(Undecodable):
        parse_object(value)


def test_the_last_of_a_name_twice_wins() -> None:
    assert parse_object(b' {"a":1,"a":2} rest') == {"a": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:00.123456789", 123_456),
        ("1970-01-02T00:00", DAY),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00-00:30", 30 * 60 * 1_000_000),
        ("1970-07-01 02:00:00 Europe/Athens", micros("1970-07-01")),
        ("2024-02-29T00:00:00Z", 19_782 * DAY),
        ("0001-01-01", -719_162 * DAY),
        ("+10000-01-01", 2_932_897 * DAY),
        ("1970", 0),
    ],
)
def test_a_timestamp_is_read_to_the_microsecond(text: str, expected: int) -> None:
    assert micros(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "1970-13-01", "1970-02-30", "1970-01-01T25:00", "70-1-1"]
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(Undecodable):
        micros(text)


def test_a_date_ignores_the_time_behind_it() -> None:
    assert days("1970-1-3 whatever") == 2


@pytest.mark.parametrize(
    ("form", "kind", "key", "expected"),
    [
        ("string", pa.int64(), b" 7 ", (7,)),
        ("string", pa.string(), b"a", ("a",)),
        ("string", pa.date32(), b"1970-01-02", (1,)),
        ("long", pa.int64(), (-7).to_bytes(8, "big", signed=True), (-7,)),
        ("json", pa.int64(), b'{"k":7,"other":1}', (7,)),
    ],
)
def test_a_message_key_names_the_row(
    form: str, kind: pa.DataType, key: bytes, expected: tuple[object, ...]
) -> None:
    assert KeyDecoder(form, pa.schema([("k", kind)]), ["k"]).row(key) == expected


@pytest.mark.parametrize(
    ("form", "key"),
    [("string", None), ("string", b"x"), ("long", b"1"), ("json", b"{}"), ("json", b"7")],
)
def test_a_message_key_that_names_no_row_is_refused(form: str, key: bytes | None) -> None:
    with pytest.raises(Undecodable):
        KeyDecoder(form, pa.schema([("k", pa.int64())]), ["k"]).row(key)


def test_differences_are_named_and_nan_is_itself() -> None:
    nan = json.loads("NaN")
    assert differences(["a", "b", "c"], (1, nan, UNJUDGED), (2, nan, "x")) == "other values in a"
    assert differences(["a"], (1,), (1,)) == ""
