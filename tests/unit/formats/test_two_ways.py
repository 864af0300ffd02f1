"""Both ways of the strict decoder give the same for records made by dice; see ``two_ways``."""

from __future__ import annotations

import pytest

from tests.unit.formats.two_ways import campaign

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_both_ways_give_the_same(seed: int) -> None:
    counts = campaign(5_000, seed)
    # Otherwise the records would not be of both kinds, or the compiled way would not be asked.
    assert 0.2 < counts["bad"] / counts["records"] < 0.8
    assert counts["compiled"] / counts["records"] > 0.3
