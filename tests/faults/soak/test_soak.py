"""The pure parts of the soak: when things happen, what counts as growth, what is drawn."""

from __future__ import annotations

import pytest

from tests.faults.soak.memory import Sample, growth
from tests.faults.soak.picture import picture
from tests.faults.soak.schedule import Happening, schedule

pytestmark = pytest.mark.unit


def test_all_that_ends_the_driver_happens_in_the_first_half() -> None:
    events = schedule(60, 40, seed=7)
    assert {each.what for each in events} == {*Happening}
    ending = {Happening.KILL, Happening.RESTORE}
    assert all(each.at_s < 1800 for each in events if each.what in ending)
    assert [each.at_s for each in events] == sorted(each.at_s for each in events)
    restarts = [each.at_s for each in events if each.what is Happening.RESTART_BROKER]
    assert restarts == [600, 1200, 1800, 2400, 3000], "every ten minutes"
    assert events == schedule(60, 40, seed=7) != schedule(60, 40, seed=8)


def test_growth_compares_the_last_quarter_with_the_one_before() -> None:
    flat = [Sample(at, 100, 900) for at in range(0, 1000, 5)]
    assert growth(flat, 1000) == 1.0
    rising = [Sample(at, 100, at * 2) for at in range(0, 1000, 5)]
    assert growth(rising, 1000) > 1.3


def test_the_picture_has_a_line_for_every_event_and_a_name_for_every_colour() -> None:
    events = schedule(1, 4, seed=1)
    drawn = picture([Sample(5, 100, 500), Sample(60, 120, 600)], events, 60)
    assert drawn.count("stroke-dasharray") == len(events)
    assert all(each.value in drawn for each in Happening)
    assert drawn.count("<polygon") == 2
