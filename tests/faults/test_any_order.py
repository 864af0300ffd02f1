"""Every offset takes effect exactly once, whatever happens, in whatever order."""

from __future__ import annotations

import pytest

from tests.faults.any_order import crashes, run

pytestmark = pytest.mark.unit


def test_every_offset_takes_effect_exactly_once_whatever_happens_in_whatever_order() -> None:
    before = crashes.total()
    run(150, 1)
    assert crashes.total() - before > 300, "the machine no longer crashes drivers"
