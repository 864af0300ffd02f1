"""Every offset takes effect exactly once, whatever happens, in whatever order."""

from __future__ import annotations

import pytest

from tests.faults.any_order import crashes, run

pytestmark = pytest.mark.unit


# Seeds in pairs, as one alone may draw few crashes: what Hypothesis makes of a seed also depends
# on which modules happen to be imported.
@pytest.mark.short(("seeds",), {((0, 1),)})
@pytest.mark.parametrize(("seeds", "histories"), [((0, 1), 20), ((2, 3), 150), ((4, 5), 150)])
def test_every_offset_takes_effect_exactly_once_whatever_happens_in_whatever_order(
    seeds: tuple[int, int], histories: int
) -> None:
    before = crashes.total()
    for number in seeds:
        run(histories, number)
    assert crashes.total() - before > histories, "the machine no longer crashes drivers"
