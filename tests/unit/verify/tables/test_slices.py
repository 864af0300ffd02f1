"""Pieces of a table are joined as far as they fit, and no row is in two slices or in none."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verify.tables.catalog import PIECES, Slice, packed, width_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "whole", "pieces", "at_most", "expected"),
    [
        ("nothing", Slice(0, 10, 0), {}, 5, []),
        ("all fit", Slice(0, 10, 4), {0: 2, 9: 2}, 5, [(0, 10, 4)]),
        ("just fit", Slice(0, 3, 5), {0: 2, 1: 2, 2: 1}, 5, [(0, 3, 5)]),
        ("two", Slice(0, 3, 6), {0: 2, 1: 2, 2: 2}, 5, [(0, 2, 4), (2, 3, 2)]),
        (
            "one too full",
            Slice(7, 10, 13),
            {0: 1, 1: 9, 2: 3},
            5,
            [(7, 8, 1), (8, 9, 9), (9, 10, 3)],
        ),
        ("a gap", Slice(0, 9, 8), {0: 4, 8: 4}, 5, [(0, 1, 4), (8, 9, 4)]),
        ("wide pieces", Slice(0, 4001, 6), {0: 3, 1333: 3}, 5, [(0, 3, 3), (3999, 4001, 3)]),
    ],
)
def test_pieces_are_joined_as_far_as_they_fit(
    name: str,
    whole: Slice,
    pieces: Mapping[int, int],
    at_most: int,
    expected: list[tuple[int, int, int]],
) -> None:
    found = [(each.start, each.until, each.rows) for each in packed(whole, pieces, at_most)]
    assert found == expected, name


@given(
    st.integers(0, 10_000),
    st.integers(1, 30_000),
    st.dictionaries(st.integers(0, PIECES - 1), st.integers(1, 9)),
    st.integers(1, 20),
)
def test_every_piece_lies_in_one_slice_of_the_whole(
    start: int, width: int, pieces: Mapping[int, int], at_most: int
) -> None:
    whole = Slice(start, start + width, sum(pieces.values()))
    pieces = {n: rows for n, rows in pieces.items() if n * width_of(whole) < width}
    found = packed(whole, pieces, at_most)
    assert sum(each.rows for each in found) == sum(pieces.values())
    for number, rows in pieces.items():
        first = start + number * width_of(whole)
        [home] = [each for each in found if each.start <= first < each.until]
        assert home.until >= min(first + width_of(whole), whole.until)
        assert home.rows <= at_most or home.rows == rows
    assert all(a.until <= b.start for a, b in pairwise(found))


def test_the_condition_in_sql_is_half_open() -> None:
    assert Slice(3, 9, 1).within("o") == "o >= 3 AND o < 9"
