"""Message keys of every registered form name the row, or are refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from rivermouth.config.registry import FORMATS, resolve
from rivermouth.verification.formats.reader import Reader, Undecodable
from rivermouth.verification.formats.scalars import days, decimal, micros, single

pytestmark = pytest.mark.unit


def key_reader(form: str, kind: pa.DataType) -> Reader:
    made: Reader = resolve(FORMATS.keys[form].reader)(pa.schema([("k", kind)]), ["k"], {})
    return made


@pytest.mark.parametrize(
    ("form", "kind", "key", "expected"),
    [
        ("string", pa.int64(), b" 7 ", 7),
        ("string", pa.int8(), b"-128", -128),
        ("string", pa.string(), b"a", "a"),
        ("string", pa.string(), b" a ", " a "),
        ("string", pa.string(), b"", ""),
        ("string", pa.binary(), b"\xff", b"\xff"),
        ("string", pa.bool_(), b" Yes ", True),
        ("string", pa.bool_(), b"no", False),
        ("string", pa.float64(), b"1.5", 1.5),
        ("string", pa.float32(), b"0.1", single(0.1)),
        ("string", pa.decimal128(5, 2), b" 1.005 ", Decimal("1.01")),
        ("string", pa.date32(), b"1970-01-02", 1),
        ("string", pa.timestamp("us", tz="UTC"), b"1970-01-01T00:00:01Z", 1_000_000),
        ("string", pa.timestamp("us"), b"1970-01-01T00:00:01+01:00", 1_000_000),
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


@pytest.mark.parametrize(
    ("form", "kind"), [("long", pa.string()), ("string", pa.list_(pa.int64()))]
)
def test_a_column_that_a_plain_key_cannot_hold_is_refused_at_once(
    form: str, kind: pa.DataType
) -> None:
    with pytest.raises(Undecodable, match="for a column of type"):
        key_reader(form, kind)


# Dates, timestamps, decimals and FLOAT as Spark reads them


DAY = 86_400_000_000


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
    "text", ["", "x", "1970-13-01", "1970-02-30", "1970-01-01T25:00", "70-1-1", "1970-01-01 0 Mars"]
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(Undecodable):
        micros(text)


def test_a_date_ignores_the_time_after_it() -> None:
    assert days("1970-1-3 whatever") == 2


def test_a_decimal_is_rounded_half_up_and_refused_where_it_needs_more_digits() -> None:
    assert decimal("99.994", 4, 2) == Decimal("99.99")
    for text in ("99.995", "NaN", "1e9"):
        with pytest.raises(Undecodable, match=r"not a DECIMAL\(4,2\)"):
            decimal(text, 4, 2)


def test_a_float_has_single_precision() -> None:
    assert single(0.1) != 0.1
    assert single(0.5) == 0.5
    assert single(-1e300) == float("-inf")


@pytest.mark.parametrize("text", ["9" * 38, "-" + "9" * 38])
def test_the_largest_decimal_fits(text: str) -> None:
    """Before, it was rounded to 28 digits first, and seemed too large."""
    assert str(decimal(text, 38, 0)) == text
