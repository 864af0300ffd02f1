"""Both ways of the strict decoder give the same for records made by dice; see ``two_ways``."""

from __future__ import annotations

import pytest

from tests.unit.formats.two_ways import campaign

pytestmark = pytest.mark.unit


def test_both_ways_give_the_same() -> None:
    counts = campaign(20_000, seed=1)
    # Otherwise the records would not be of both kinds, or the compiled way would not be asked.
    assert 0.1 < counts["bad"] / counts["records"] < 0.8
    assert counts["compiled"] / counts["records"] > 0.3
    assert counts["alike"] / counts["records"] > 0.1
