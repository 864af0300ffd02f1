"""Dates, timestamps, decimals and FLOAT as Spark reads them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from rivermouth.verify.formats.reader import Undecodable
from rivermouth.verify.formats.scalars import days, decimal, micros, single

pytestmark = pytest.mark.unit

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
