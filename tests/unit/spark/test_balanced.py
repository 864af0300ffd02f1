"""Many conditions as one that is not deep."""

from __future__ import annotations

import pytest

from rivermouth.spark.session import balanced

pytestmark = pytest.mark.unit


def either(one: str, other: str) -> str:
    return f"({one} {other})"


def depth(text: str) -> int:
    deepest = open_now = 0
    for letter in text:
        open_now += (letter == "(") - (letter == ")")
        deepest = max(deepest, open_now)
    return deepest


@pytest.mark.parametrize(
    ("number", "levels"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1_000, 10), (1_024, 10)]
)
def test_the_order_stays_and_the_depth_grows_with_the_logarithm(number: int, levels: int) -> None:
    items = [str(each) for each in range(number)]
    made = balanced(either, items)
    assert made.replace("(", "").replace(")", "").split() == items
    assert depth(made) == levels
