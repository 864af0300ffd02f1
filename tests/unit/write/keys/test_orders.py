"""Which of two values is the greater one, as Spark says; and its short form in an index."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.write.keys.settle import compared, orders

pytestmark = pytest.mark.unit

NAN, INFINITE = float("nan"), float("inf")
AT = datetime(2026, 1, 2, tzinfo=timezone.utc)
WIDE = Decimal("99999999999999999999999999.00")
CASES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, -(2**63), -1, 0, 1, 2**63 - 1]),
    (pa.int8(), [None, -128, 0, 127]),
    (pa.bool_(), [None, False, True]),
    (pa.float64(), [None, -INFINITE, -1e300, -0.5, 0.0, 5e-324, 1.0, INFINITE, NAN]),
    (pa.float32(), [None, -1.5, 0.0, 1.5, NAN]),
    (pa.date32(), [None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    (pa.timestamp("us", "UTC"), [None, AT.replace(year=1), AT, AT.replace(microsecond=1)]),
    (pa.timestamp("us"), [None, datetime(1, 1, 1), datetime(2026, 1, 1)]),
    (pa.decimal128(38, 2), [None, -WIDE, Decimal("-1.00"), Decimal("0.00"), Decimal("1.00"), WIDE]),
    (pa.string(), [None, "", "a", "abcdefgh", "abcdefghA", "abcdefghB", "b", "ä", "\uffff", "😀"]),
    (pa.binary(), [None, b"", b"\0", b"a", b"\xff"]),
]
"""Values of a type in Spark's order."""


@pytest.mark.parametrize(("kind", "values"), CASES, ids=str)
def test_values_stand_in_sparks_order(kind: pa.DataType, values: list[Any]) -> None:
    pairs = [(one, other) for one in range(len(values)) for other in range(len(values))]
    ones, others = (pa.array([values[each[at]] for each in pairs], kind) for at in (0, 1))
    expected = [(one > other) - (one < other) for one, other in pairs]
    assert compared([ones], [others], len(pairs)).tolist() == expected


@pytest.mark.parametrize(("kind", "values"), CASES, ids=str)
def test_a_short_form_never_tells_another_order(kind: pa.DataType, values: list[Any]) -> None:
    every = pa.array([None, *values], kind)
    found = orders(every).tolist()
    assert all(one <= other for one, other in pairwise(found[1:]))
    assert orders(every.slice(1)).tolist() == found[1:]
    assert len(set(found)) > len(values) // 2, "else it tells nothing"


def test_zeros_of_both_signs_are_equal() -> None:
    zeros = pa.array([0.0, -0.0])
    assert len({*orders(zeros).tolist()}) == 1
    assert compared([zeros], [zeros.take(pa.array([1, 0]))], 2).tolist() == [0, 0]


def test_the_first_column_that_differs_decides() -> None:
    ones = [pa.array([1, 1, 2, None]), pa.array(["b", "a", "a", "a"])]
    others = [pa.array([1, 1, 1, 1]), pa.array(["a", "a", "z", "a"])]
    assert compared(ones, others, 4).tolist() == [1, 0, 1, -1]
