"""Every offset takes effect exactly once, whatever happens, in whatever order."""

from __future__ import annotations

import pytest

from tests.faults.any_order import crashes, run

pytestmark = pytest.mark.unit


def test_every_offset_takes_effect_exactly_once_whatever_happens_in_whatever_order() -> None:
    # Four seeds, as one alone may draw few crashes: what Hypothesis makes of a seed also depends
    # on which modules happen to be imported.
    before = crashes.total()
    for number in range(4):
        run(150, number)
    assert crashes.total() - before > 300, "the machine no longer crashes drivers"
