"""Numbers of distinct values: exact for few, near for many, and how far a sketch may be off."""

from __future__ import annotations

import pytest

from rivermouth.verify.proofs.measures import KEPT, distinct, hashed, merged, packed

pytestmark = pytest.mark.unit


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
