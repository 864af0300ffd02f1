"""Every offset takes effect exactly once, whatever happens, in whatever order."""

from __future__ import annotations

import pytest

from tests.faults.any_order import crashes, run

pytestmark = pytest.mark.unit


# Seeds in pairs, as one alone may draw few crashes: what Hypothesis makes of a seed also depends
# on which modules happen to be imported.
@pytest.mark.short(("seeds",), {((0, 1),)})
@pytest.mark.parametrize("seeds", [(0, 1), (2, 3)])
def test_every_offset_takes_effect_exactly_once_whatever_happens_in_whatever_order(
    seeds: tuple[int, int],
) -> None:
    before = crashes.total()
    for number in seeds:
        run(150, number)
    assert crashes.total() - before > 150, "the machine no longer crashes drivers"
