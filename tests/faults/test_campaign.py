"""The torture campaign: a seed repeats it, a tally goes on with it, and a short one is clean."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.faults.campaign.campaign import Campaign
from tests.faults.campaign.faults import DEEDS
from tests.faults.campaign.plan import CALLS, HARMLESS, POINTS, UNDOING, round_of
from tests.faults.campaign.tally import Tally


@pytest.mark.unit
def test_a_seed_repeats_a_campaign_and_another_is_another() -> None:
    assert [round_of(7, n) for n in range(99)] == [round_of(7, n) for n in range(99)]
    assert [round_of(7, n) for n in range(99)] != [round_of(8, n) for n in range(99)]


@pytest.mark.unit
def test_a_long_campaign_comes_to_every_point_call_kind_and_fault() -> None:
    rounds = [round_of(1, n) for n in range(1000)]
    details = {each.kill.detail for each in rounds}
    assert {f"{point}={times}*kill" for point in POINTS for times in (1, 2, 3)} <= details
    assert {*CALLS} <= details
    kinds = {each.kill.kind for each in rounds}
    assert kinds == {"point", "call", "file", "freeze", "time", "orphan"}
    assert {fault.name for each in rounds for fault in each.faults} == {*HARMLESS, *UNDOING}
    assert {*DEEDS} == {*HARMLESS, *UNDOING}


@pytest.mark.unit
def test_a_tally_goes_on_where_it_was_and_is_of_one_seed(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    tally = Tally.load(file, seed=3)
    tally.rounds += 2
    tally.kills["point P6"] += 2
    tally.kills["call jvm rename 3"] += 1
    tally.save(file)
    again = Tally.load(file, seed=3)
    assert again == tally
    said = json.loads(again.line())
    assert said["kills"] == {"total": 3, "call": 1, "point": 2}
    assert (said["seed"], said["rounds"], said["violations"]) == (3, 2, 0)
    with pytest.raises(ValueError, match="seed 3"):
        Tally.load(file, seed=4)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.slow
def test_a_short_campaign_of_real_kills_finds_nothing(tmp_path: Path) -> None:
    tally = Tally(seed=20)
    Campaign(tmp_path, tally, preloaded=None).world(8, time.monotonic() + 600)
    assert tally.violations == []
    assert tally.kills.total() >= 5
    assert tally.records > 5000
