"""Metrics one by one: what their states add up to, what fits, and what a table may hold.

Numbers of distinct values are exact for few and near for many; a sketch may be off so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verification.proofs.measures import KEPT, Metric, distinct, hashed, merged, packed

pytestmark = pytest.mark.unit

NAN = float("nan")


def state(metric: Metric, values: Sequence[Any]) -> Any:
    """The state after values, each added to the state before."""
    found = None
    for each in values:
        found = metric.begun(each) if found is None else metric.with_value(found, each)
    return metric.on_disk(found)


@pytest.mark.parametrize(
    ("function", "values", "shown"),
    [
        ("sum", [], None),
        ("sum", [1, -3], -2),
        ("sum", [Decimal("0.1"), Decimal("0.2")], Decimal("0.3")),
        ("count", [], 0),
        ("count", [5, 5], 2),
        ("min", [], None),
        ("min", [3, -1], -1),
        ("min", [NAN, 1.0], 1.0),
        ("max", ["a", "é", "z"], "é"),
        ("max", [NAN, 1.0], NAN),
        ("max", [b"\x7f", b"\x80"], b"\x80"),
        ("approx_distinct", [], 0),
        ("approx_distinct", ["a", "b", "a"], 2),
    ],
)
def test_a_metric_of_values(function: str, values: Sequence[Any], shown: Any) -> None:
    metric = Metric("m", function, "c")
    found = state(metric, values)
    assert repr(metric.shown(found)) == repr(shown)
    assert metric.agrees(found, shown)
    assert metric.may_grow_to(found, shown)


@given(
    st.sampled_from(["sum", "count", "min", "max", "approx_distinct"]),
    st.lists(st.lists(st.integers(-9, 9))),
)
def test_it_does_not_depend_on_how_values_are_parted(function: str, parts: list[list[int]]) -> None:
    metric = Metric("m", function, "c")
    apart = [state(metric, each) for each in parts]
    together = reduce(metric.joined, apart, None)
    whole = state(metric, [each for part in parts for each in part])
    assert metric.shown(together) == metric.shown(whole)


@pytest.mark.parametrize(
    ("kind", "total", "fits"),
    [
        (pa.int8(), (1 << 63) - 1, True),
        (pa.int8(), 1 << 63, False),
        (pa.int64(), -(1 << 63), True),
        (pa.int64(), -(1 << 63) - 1, False),
        (pa.decimal128(4, 2), Decimal("999999999999.99"), True),
        (pa.decimal128(4, 2), Decimal("1000000000000.00"), False),
        (pa.decimal128(38, 0), Decimal("9" * 37), True),
        (pa.decimal128(38, 0), Decimal(10) ** 37, False),
        (pa.int64(), None, True),
    ],
)
def test_a_sum_fits_as_long_as_its_column_can_hold_it(
    kind: pa.DataType, total: Any, fits: bool
) -> None:
    metric = Metric("m", "sum", "c", kind)
    assert metric.fits(None if total is None else metric.begun(total)) is fits


@pytest.mark.parametrize(
    ("kind", "values", "fits"),
    [
        (pa.decimal128(38, 0), [6 * 10**37, -6 * 10**37], False),
        (pa.decimal128(38, 0), [5 * 10**37, -(5 * 10**37 - 1)], True),
        (pa.decimal128(38, 1), [5 * 10**36, -5 * 10**36], False),
        (pa.decimal128(28, 0), [6 * 10**37, -6 * 10**37], True),
        (pa.int64(), [1 << 63, -(1 << 63)], True),
    ],
)
def test_a_sum_of_wide_decimals_may_not_fit_on_the_way(
    kind: pa.DataType, values: list[int], fits: bool
) -> None:
    metric = Metric("m", "sum", "c", kind)
    made: list[Any] = [Decimal(each) if pa.types.is_decimal(kind) else each for each in values]
    whole = reduce(metric.joined, map(metric.begun, made))
    assert metric.fits_in_any_order(whole) is fits
    assert metric.shown(whole) == sum(values)


def test_sums_of_decimals_are_exact_beyond_the_digits_that_python_keeps() -> None:
    metric = Metric("m", "sum", "c", pa.decimal128(37, 2))
    large = Decimal("12345678901234567890123456789012345.67")
    found = metric.shown(state(metric, [large, Decimal("0.01")]))
    assert str(found) == "12345678901234567890123456789012345.68"


@pytest.mark.parametrize(
    ("function", "values", "found"),
    [
        ("sum", [1, 2], 4),
        ("sum", [1], None),
        ("count", [1], 2),
        ("count", [], None),
        ("min", [3], 4),
        ("min", [], 4),
        ("max", ["b"], "a"),
        ("approx_distinct", [1, 2], 4),
        ("approx_distinct", [1], None),
    ],
)
def test_another_value_does_not_agree(function: str, values: Sequence[Any], found: Any) -> None:
    metric = Metric("m", function, "c")
    assert not metric.agrees(state(metric, values), found)


@pytest.mark.parametrize(
    ("function", "values", "found", "possible"),
    [
        ("sum", [5], -7, True),
        ("count", [1, 1], 3, True),
        ("count", [1, 1], 1, False),
        ("count", [1], None, False),
        ("min", [3], 2, True),
        ("min", [3], 4, False),
        ("max", [3], 4, True),
        ("max", [3], 2, False),
        ("max", [3], None, False),
        ("max", [], None, True),
        ("approx_distinct", [1, 2, 3], 9, True),
        ("approx_distinct", [1, 2, 3], 1, False),
    ],
)
def test_what_more_records_may_have_made_of_it(
    function: str, values: Sequence[Any], found: Any, possible: bool
) -> None:
    metric = Metric("m", function, "c")
    assert metric.may_grow_to(state(metric, values), found) is possible


# Distinct values


def of(*values: object) -> bytes:
    return packed({hashed(each) for each in values})


def test_equal_values_count_once_however_they_are_put_together() -> None:
    assert distinct(merged(of(1, 2), of(2, 3))) == (3, 1.0)
    assert distinct(merged(of("a", "é"), of("b"))) == (3, 1.0)
    assert distinct(b"") == (0, 1.0)


def test_a_text_and_its_bytes_are_one_value_and_negative_numbers_are_values() -> None:
    assert hashed("a") == hashed(b"a")
    assert distinct(of(-1, 1, -(1 << 63)))[0] == 3


@pytest.mark.parametrize(("number", "low", "high"), [(192, 1, 1), (10_000, 970, 980)])
def test_the_tolerance_is_six_standard_errors_of_what_a_sketch_estimates(
    number: int, low: float, high: float
) -> None:
    found, tolerance = distinct(of(*range(number)))
    assert found == number
    assert low <= tolerance <= high


def test_of_many_values_only_the_smallest_hashes_are_kept_and_the_number_is_near() -> None:
    whole = packed({hashed(each) for each in range(200_000)})
    halves = [
        packed({hashed(each) for each in range(*ends)})
        for ends in ((0, 120_000), (100_000, 200_000))
    ]
    assert len(whole) == KEPT * 8
    number, tolerance = distinct(whole)
    assert abs(number - 200_000) < 200_000 * 0.02
    assert tolerance < 200_000 * 0.11
    assert distinct(merged(*halves)) == (number, tolerance)
