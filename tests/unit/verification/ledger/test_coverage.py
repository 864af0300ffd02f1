"""Offsets are found in the ranges of the ledger, whatever order and overlap these have."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rivermouth.verification.ledger.coverage import Coverage, Span
from tests.unit.verification.doubles import entry, span

pytestmark = pytest.mark.unit


def test_a_partition_without_a_covered_offset_is_left_out() -> None:
    coverage = Coverage(
        [entry(1, span(4, 4), span(2, 3, ("t", 1))), entry(2, span(0, 2, ("s", 0)))]
    )
    assert list(coverage) == [("s", 0), ("t", 1)]
    assert coverage.total() == 3
    coverage.spans["t", 1].visible[0] += 1
    coverage.spans["s", 0].visible[0] += 2
    coverage.spans["s", 0].quarantined[0] += 1
    assert (coverage.records(), coverage.quarantined()) == (3, 1)


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=8),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_an_offset_is_found_where_a_slow_search_finds_it(
    widths: list[int], offsets: list[int]
) -> None:
    edges = np.cumsum([0, *widths]).tolist()
    ranges = [(a, b, n) for n, (a, b) in enumerate(pairwise(edges)) if n % 2]
    assume(any(a < b for a, b, _ in ranges))
    span_ = Span(ranges)
    found = [
        int(span_.entries[index]) if index >= 0 else None
        for index in span_.index(np.array(offsets, np.int64)).tolist()
    ]
    slow = [next((n for a, b, n in ranges if a <= each < b), None) for each in offsets]
    assert found == slow
