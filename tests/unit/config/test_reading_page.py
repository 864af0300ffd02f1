"""``docs/reading.md``: its examples load, and the code shares out as it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config import Config
from rivermouth.protocol.batches import next_ranges
from rivermouth.protocol.offsets import Position
from tests.builders import place

pytestmark = pytest.mark.unit

TEXT = (Path(__file__).parents[3] / "docs" / "reading.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
RATES = TEXT.partition("\n## Rates\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("text", FILES)
def test_every_example_of_a_file_loads(text: str, loads: Callable[..., Config]) -> None:
    assert loads(text).pipelines


def test_the_example_of_a_share_is_what_is_shared_out() -> None:
    numbers = [int(each.replace(",", "")) for each in re.findall(r"\b\d+(?:,\d{3})+\b", RATES)]
    large, small, limit, most = numbers
    few = re.search(
        r"and (\d+) of each small one\. After (\d+) .*?after (\d+) the", RATES, re.DOTALL
    )
    assert few is not None
    ends = {place(n): small if n else large for n in range(10)}
    stands, counts = Position(dict.fromkeys(ends, 0)), list[int]()
    while ranges := next_ranges(stands, ends, limit):
        if not counts:
            assert [each.span for each in ranges] == [most, *[int(few[1])] * 9]
        stands = stands.advance(ranges)
        counts.append(len(ranges))
    small_ones_done = max(n for n, count in enumerate(counts, 1) if count > 1)
    assert (small_ones_done, len(counts)) == (int(few[2]), int(few[3]))
