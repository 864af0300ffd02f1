"""Counts of ranges out of a histogram of partitions' numbers."""

from __future__ import annotations

import json

import pytest

from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.evaluation import counts_of, first_numbers
from tests.builders import span

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("ranges", "firsts"),
    [
        ([], {}),
        ([span(0, 5, 7)], {"t": 0}),
        (
            [span(0, 5), span(0, 5, 2), span(0, 5, 1, "u"), span(0, 5, 0, "v")],
            {"t": 0, "u": 3, "v": 5},
        ),
        ([span(0, 5, 0, "u"), span(0, 5, 0, "t"), span(0, 5, 4, "u")], {"u": 0, "t": 5}),
    ],
)
def test_every_partition_of_every_topic_has_a_number_of_its_own(
    ranges: list[OffsetRange], firsts: dict[str, int]
) -> None:
    assert first_numbers(ranges) == firsts
    numbers = [firsts[each.topic] + each.partition for each in ranges]
    assert len({*numbers}) == len(ranges)


@pytest.mark.parametrize(
    ("histogram", "counts"),
    [
        ([], [0, 0, 0]),
        ([(0.0, 4.0), (2.0, 1.0), (3.0, 2.0)], [4, 1, 2]),
        ([(3.0, 2.0), (2.0, 1.0), (3.0, 2.0)], [0, 1, 4]),
        ([(1.9999999999, 3.0), (3.0000000001, 2.0)], [0, 3, 2]),
    ],
    ids=["nothing", "a bin each", "two bins of one partition", "bins that were merged"],
)
def test_the_counts_stand_in_the_order_of_the_ranges(
    histogram: list[tuple[float, float]], counts: list[int]
) -> None:
    ranges = [span(0, 9), span(0, 9, 2), span(0, 9, 0, "u")]
    text = json.dumps([{"x": x, "y": y} for x, y in histogram])
    found = counts_of(ranges, first_numbers(ranges), text)
    assert found == tuple(RowCounts(each, 0) for each in counts)
