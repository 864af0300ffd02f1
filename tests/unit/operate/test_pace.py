"""What a pipeline is in, by the evidence of its newest commits."""

from __future__ import annotations

import pytest

from rivermouth.operate.pace import Evidence, Pace, State, Step
from tests.pages import page

pytestmark = pytest.mark.unit

NOW = 10_000_000


def pace(*ages_s: float | None, every_s: float = 5, offsets: int = 100, quiet_s: float = 1) -> Pace:
    """One step for each age of its newest record, the last one ``quiet_s`` ago."""
    last = NOW - quiet_s * 1000
    first = last - every_s * 1000 * (len(ages_s) - 1)
    return Pace(
        tuple(
            Step(
                int(first + number * every_s * 1000),
                offsets,
                None if age is None else int(age * 1000),
            )
            for number, age in enumerate(ages_s)
        )
    )


FALLS, GROWS, SAME = (80, 60, 40, 20), (20, 40, 60, 80), (50, 50, 50, 50)
CASES: dict[str, tuple[Evidence, State]] = {
    "nothing waits": (Evidence(NOW, 0, pace(*GROWS, quiet_s=9_000)), State.OK),
    "nothing was committed": (Evidence(NOW, 7), State.NEW),
    "it comes nearer": (Evidence(NOW, 9_000, pace(*FALLS), NOW - 25_000), State.CATCHING_UP),
    "it falls back": (Evidence(NOW, 9_000, pace(*GROWS), NOW - 85_000), State.SLOW),
    "it stays as far": (Evidence(NOW, 9_000, pace(*SAME), NOW - 55_000), State.SLOW),
    "one step up on the way": (
        Evidence(NOW, 9_000, pace(80, 60, 65, 20), NOW - 25_000),
        State.CATCHING_UP,
    ),
    "three commits prove nothing": (
        Evidence(NOW, 9_000, pace(20, 40, 60), NOW - 70_000),
        State.CATCHING_UP,
    ),
    "no commit tells how old": (
        Evidence(NOW, 9_000, pace(None, None, None, None)),
        State.CATCHING_UP,
    ),
    "the first commit": (Evidence(NOW, 9_000, pace(50), NOW - 50_000), State.CATCHING_UP),
    "what waits is young": (Evidence(NOW, 9_000, pace(*SAME), NOW - 9_000), State.OK),
    "little waits": (Evidence(NOW, 150, pace(*SAME), NOW - 55_000), State.OK),
    "little waits, nobody knows since when": (Evidence(NOW, 150, pace(*SAME)), State.OK),
    "a run tries again": (
        Evidence(NOW, 150, pace(*SAME), NOW - 1_000, retrying=True),
        State.STALLED,
    ),
    "commits read nothing": (
        Evidence(NOW, 150, pace(*SAME, every_s=21, offsets=0), NOW - 55_000),
        State.STALLED,
    ),
    "two changes were accepted, and nothing was read yet": (
        Evidence(NOW, 9_000, pace(50, 51, every_s=1, offsets=0), NOW - 55_000),
        State.CATCHING_UP,
    ),
    "no commit for a minute": (
        Evidence(NOW, 150, pace(*FALLS, quiet_s=61), NOW - 70_000),
        State.STOPPED,
    ),
    "a batch an hour, the next is due": (
        Evidence(NOW, 150, pace(*FALLS, every_s=3_600, quiet_s=3_500), NOW - 3_400_000),
        State.OK,
    ),
    "a batch an hour, two are missing": (
        Evidence(NOW, 150, pace(*FALLS, every_s=3_600, quiet_s=7_300), NOW - 7_250_000),
        State.STOPPED,
    ),
    "a record after a silent night": (
        Evidence(NOW, 1, pace(*FALLS, quiet_s=9_000), NOW - 2_000),
        State.OK,
    ),
    "nobody knows since when it waits": (Evidence(NOW, 1, pace(*FALLS, quiet_s=61)), State.STOPPED),
    "a producer without a clock": (
        Evidence(NOW, 9_000, pace(*FALLS, quiet_s=61), 0),
        State.STOPPED,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_state_follows_from_evidence(case: str) -> None:
    evidence, expected = CASES[case]
    assert evidence.state is expected


def test_a_pace_tells_rate_pause_and_when_nothing_waits() -> None:
    steps = (Step(0, 999, 80_000), Step(4_000, 100, None), Step(10_000, 500, 40_000))
    found = Pace(steps)
    assert (found.offsets_per_s, found.pause_s) == (60.0, 6.0)
    assert found.caught_up_in(60) == 15.0, "it fell by 40 s in 10 s"
    assert Pace(steps[:2]).caught_up_in(60) is None
    assert Pace((steps[2], Step(12_000, 5, 41_000))).caught_up_in(60) is None, "it grows"
    assert (Pace().offsets_per_s, Pace().pause_s, Pace().caught_up_in(60)) == (None, 0.0, None)
    assert Pace((steps[0], Step(0, 5, 1))).offsets_per_s is None, "both in the same moment"


def test_the_page_lists_the_states() -> None:
    table = page("status").partition("<!-- states -->")[2].partition("<!-- end -->")[0]
    listed = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert listed == {each.value for each in State}
