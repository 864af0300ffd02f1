"""Numbers of any length are judged exactly; none of them ends verify."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from rivermouth.verification.formats.exact import decimal, unscaled
from rivermouth.verification.formats.reader import Undecodable

pytestmark = pytest.mark.unit

KIND = pa.decimal128(12, 2)


@pytest.mark.parametrize(
    ("number", "scale", "expected"),
    [
        (12_345, 2, Decimal("123.45")),
        (-999_999_999_999, 2, Decimal("-9999999999.99")),
        (1_000_000_000_000, 2, None),
        (10**150, 149, Decimal("10.00")),
        (10**150 + 1, 149, None),
        (10**200, 0, None),
        (10**6000, 0, None),
    ],
    ids=["fits", "negative", "one digit more", "zeros", "not only zeros", "long", "very long"],
)
def test_a_column_takes_a_number_that_it_holds_exactly(
    number: int, scale: int, expected: Decimal | None
) -> None:
    given = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    if expected is None:
        with pytest.raises(Undecodable):
            decimal(unscaled(given, scale), KIND)
    else:
        assert decimal(unscaled(given, scale), KIND) == expected


def test_a_number_near_the_edge_of_a_wide_column_is_not_rounded_beyond_it() -> None:
    wide = pa.decimal128(38, 0)
    assert decimal(Decimal(10**38 - 1), wide) == 10**38 - 1
