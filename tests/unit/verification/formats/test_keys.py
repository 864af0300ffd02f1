"""Message keys of every registered form name the row, or are refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from rivermouth.config.formats import FORMATS
from rivermouth.config.registry import resolve
from rivermouth.verification.formats.json_scalars import single
from rivermouth.verification.formats.reader import Reader, Undecodable

pytestmark = pytest.mark.unit


def key_reader(form: str, kind: pa.DataType) -> Reader:
    made: Reader = resolve(FORMATS.keys[form].reader)(pa.schema([("k", kind)]), ["k"], {})
    return made


@pytest.mark.parametrize(
    ("form", "kind", "key", "expected"),
    [
        ("string", pa.int64(), b"7", 7),
        ("string", pa.int64(), b"7.0", 7),
        ("string", pa.int8(), b"-128", -128),
        ("string", pa.string(), b"a", "a"),
        ("string", pa.string(), b" a ", " a "),
        ("string", pa.string(), b"", ""),
        ("string", pa.binary(), b"\xff", b"\xff"),
        ("string", pa.bool_(), b"true", True),
        ("string", pa.bool_(), b"false", False),
        ("string", pa.float64(), b"1.5", 1.5),
        ("string", pa.float32(), b"0.1", single(0.1)),
        ("string", pa.decimal128(5, 2), b"1.05", Decimal("1.05")),
        ("string", pa.date32(), b"1970-01-02", 1),
        ("string", pa.timestamp("us", tz="UTC"), b"1970-01-01T00:00:01Z", 1_000_000),
        ("string", pa.timestamp("us"), b"1970-01-01T00:00:01", 1_000_000),
        ("long", pa.int64(), (-7).to_bytes(8, "big", signed=True), -7),
        ("long", pa.int16(), (300).to_bytes(8, "big", signed=True), 300),
        ("json", pa.int64(), b'{"k":7,"other":1}', 7),
    ],
)
def test_a_message_key_names_the_row(
    form: str, kind: pa.DataType, key: bytes, expected: object
) -> None:
    assert key_reader(form, kind)(key) == (expected,)


@pytest.mark.parametrize(
    ("form", "kind", "key"),
    [
        ("string", pa.int64(), b"x"),
        ("string", pa.int64(), b" 7"),
        ("string", pa.bool_(), b"True"),
        ("string", pa.decimal128(5, 2), b"1.005"),
        ("string", pa.int64(), b""),
        ("string", pa.int8(), b"128"),
        ("string", pa.float64(), b"x"),
        ("string", pa.date32(), b"x"),
        ("string", pa.timestamp("us"), b"1970-01-01T00:00:01z"),
        ("string", pa.timestamp("us"), b"00:00:01"),
        ("string", pa.int64(), b"1_0"),
        ("string", pa.bool_(), b"maybe"),
        ("string", pa.decimal128(5, 2), b"1,5"),
        ("long", pa.int64(), b"1"),
        ("long", pa.int8(), (300).to_bytes(8, "big", signed=True)),
        ("json", pa.int64(), b"7"),
        ("json", pa.int64(), b""),
    ],
)
def test_a_message_key_that_names_no_row_is_refused(
    form: str, kind: pa.DataType, key: bytes
) -> None:
    read = key_reader(form, kind)
    with pytest.raises(Undecodable):
        read(key)


def test_a_column_that_a_long_key_cannot_hold_is_refused_at_once() -> None:
    with pytest.raises(Undecodable, match="for a column of type"):
        key_reader("long", pa.string())
