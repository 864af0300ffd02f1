"""The torture harness: a short campaign with real kills, and what it counts and plans."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.faults.torture import faults, troubles
from tests.faults.torture.calls import SPOTS, CallWatch
from tests.faults.torture.campaign import Campaign, Place
from tests.faults.torture.oracle import unexpected
from tests.faults.torture.plan import (
    ENDINGS,
    HALTS,
    POINTS,
    QUIET,
    Fate,
    Kill,
    Kind,
    Outcome,
    Plan,
    deck,
)
from tests.faults.torture.records import ACCOUNTS, EVENTS, chunks
from tests.faults.torture.records import Fate as ChunkFate
from tests.faults.torture.signs import SignWatch
from tests.faults.torture.standby import Done
from tests.faults.torture.tally import Tally

SHORT = (
    Kill(Kind.POINT, "P6"),
    Kill(Kind.POINT, "P12"),
    Kill(Kind.POINT, "P8", 2),
    Kill(Kind.POINT, "P3", 3),
    Kill(Kind.SIGN, "accounts log"),
    Kill(Kind.SIGN, "events file"),
    Kill(Kind.MOMENT, "moment"),
    Kill(Kind.ZOMBIE, "events log", fate=Fate.DIES),
    Kill(Kind.ZOMBIE, "accounts log", fate=Fate.WAKES),
)
PLAN = Plan(3, SHORT, heal_every=5, world_rounds=10, halts=["restored"], endings=[None])


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.slow
def test_a_short_campaign_kills_drivers_and_violates_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    place = Place(tmp_path / "campaign", tmp_path / "tally.json")
    campaign = Campaign(PLAN, place, "canary-1b9f", lines.append, records=600)

    tally = campaign.run(10, threading.Event())

    assert tally.violations == [], lines
    assert tally.kills.total() >= 8, lines
    assert tally.kills["zombie"] >= 1
    assert tally.faults.total() >= 3
    assert tally.records > 4000
    assert all(len(line) <= 80 for line in lines)
    assert Tally.load(place.tally, PLAN.seed) == tally
    assert not list(place.folder.glob("world-*"))


@pytest.mark.unit
def test_a_seed_repeats_the_plan_of_a_campaign_and_another_seed_makes_another() -> None:
    first, again, other = (Plan(seed, deck(calls=True)) for seed in (7, 7, 8))
    rounds = [first.round(number) for number in range(300)]
    assert rounds == [again.round(number) for number in reversed(range(300))][::-1]
    assert rounds != [other.round(number) for number in range(300)]


@pytest.mark.unit
def test_every_kill_comes_once_before_any_comes_again() -> None:
    kills = deck(calls=True)
    plan = Plan(5, kills)
    for deal in range(2):
        numbers = range(deal * len(kills), (deal + 1) * len(kills))
        dealt = [plan.round(number).kill for number in numbers]
        places = Counter((each.kind, each.what, each.fate) for each in dealt)
        assert places == Counter((each.kind, each.what, each.fate) for each in kills)
    assert {each.what for each in kills if each.kind is Kind.POINT} == {*POINTS}
    assert {each.what for each in kills if each.kind is Kind.CALL} == {*SPOTS}


@pytest.mark.unit
def test_a_thousand_rounds_meet_every_fault_and_every_planned_fault_is_there() -> None:
    rounds = [Plan(1, deck(calls=True)).round(number) for number in range(1000)]
    assert {name for each in rounds for name in each.faults} == {*QUIET} == {*faults.QUIET}
    assert {each.halt for each in rounds} == {None, *HALTS} == {None, *troubles.HALTS}
    assert {each.ending for each in rounds} == {None, *ENDINGS} == {None, *troubles.ENDINGS}
    assert all(each.heals for each in rounds if each.halt or each.last or each.ending)


@pytest.mark.unit
def test_a_round_has_every_sort_of_record_and_the_same_ones_each_time() -> None:
    partitions = {EVENTS: 3, ACCOUNTS: 4}
    made = [each for part in range(20) for each in chunks(1, part, 600, partitions)]
    assert made == [each for part in range(20) for each in chunks(1, part, 600, partitions)]
    records = [record for chunk in made for record in chunk.records]
    assert len({each.number for each in records}) == len(records) == 12_000
    ops = Counter((each.op, each.topic) for each in records)
    assert {name for name, _ in ops} == {"append", "upsert", "delete", "poison"}
    assert 300 < ops["poison", EVENTS] + ops["poison", ACCOUNTS] < 700
    places = {(each.topic, each.partition) for each in records}
    assert places == {(topic, at) for topic, count in partitions.items() for at in range(count)}
    aborted = sum(len(each.records) for each in made if each.fate is ChunkFate.ABORTED)
    assert aborted == 600


@pytest.mark.unit
def test_only_a_driver_that_died_is_counted() -> None:
    tally, this = Tally(3), PLAN.round(0)
    tally.add(this, Outcome(died=False, faults=["optimize"], violations=["lost"]), 2.0)
    assert (tally.rounds, tally.kills.total(), tally.missed[str(this.kill)]) == (1, 0, 1)
    assert (tally.faults["optimize"], tally.violations) == (1, ["round 0: lost"])
    tally.add(this, Outcome(died=True), 2.0)
    assert (tally.rounds, tally.kills[this.kill.name], tally.places.total()) == (2, 1, 1)


@pytest.mark.unit
def test_a_tally_is_taken_up_again_but_not_by_another_campaign(tmp_path: Path) -> None:
    file, tally = tmp_path / "tally.json", Tally(3)
    tally.add(PLAN.round(0), Outcome(died=True), 1.5)
    tally.save(file)
    (tmp_path / "tally.json.new").write_text("{cut", encoding="utf-8")
    assert Tally.load(file, 3) == tally
    with pytest.raises(ValueError, match="seed 3, not 4"):
        Tally.load(file, 4)


@pytest.mark.unit
def test_the_last_line_says_what_was_done_in_json() -> None:
    tally = Tally(3, rounds=4, records=1200, violations=["one", "two"])
    tally.kills.update(["P6", "call", "P6"])
    tally.faults.update(["optimize"])
    assert json.loads(tally.summary()) == {
        "seed": 3,
        "rounds": 4,
        "kills": {"P6": 2, "call": 1},
        "faults": {"optimize": 1},
        "records": 1200,
        "violations": 2,
    }


@pytest.mark.unit
@pytest.mark.parametrize(
    ("codes", "allowed", "wrong"),
    [
        ({EVENTS: None, ACCOUNTS: None}, {}, 0),
        ({EVENTS: "RM411", ACCOUNTS: None}, {EVENTS: ["RM411"]}, 0),
        ({EVENTS: None, ACCOUNTS: None}, {EVENTS: ["RM411"]}, 1),
        ({EVENTS: "RM503", ACCOUNTS: "RM411"}, {EVENTS: ["RM411"]}, 2),
        ({EVENTS: "RM413", ACCOUNTS: None}, {EVENTS: [None, "RM413"]}, 0),
    ],
)
def test_going_on_where_a_halt_is_due_is_as_wrong_as_a_halt_nobody_expects(
    codes: Mapping[str, str | None], allowed: Mapping[str, Sequence[str | None]], wrong: int
) -> None:
    assert len(unexpected(Done(3, codes), allowed)) == wrong
    assert len(unexpected(None, allowed)) == 1


@pytest.mark.unit
def test_a_call_is_noticed_before_it_is_done_and_counted_once() -> None:
    watch, hit = CallWatch("events: log renamed"), threading.Event()
    traced = os.dup(watch.pipe)
    watch.start()
    log = "/lake/bronze/events/_delta_log"
    call = f'7 rename("{log}/.00000000000000000001.json.tmp", "{log}/00000000000000000001.json"'
    os.write(traced, f"{call}) = 0\n".encode())
    time.sleep(0.2)  # read before it is armed, and so not counted
    watch.arm(2, hit.set)
    os.write(traced, b'7 rename("/tmp/a", "/tmp/b") = 0\n')
    os.write(traced, call.encode())
    assert not hit.wait(0.2)
    os.write(traced, b") = 0 (DELAYED)\n")
    assert not hit.wait(0.2), "the end of a call is not another call"
    os.write(traced, f"8{call}".encode())
    assert hit.wait(5)
    assert watch.hit.startswith("87 rename")
    os.close(traced)


@pytest.mark.unit
def test_a_sign_is_seen_once_that_many_new_files_are_there(tmp_path: Path) -> None:
    folder, seen = tmp_path / "bronze" / "events", threading.Event()
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").touch()
    watch = SignWatch(tmp_path, "events file", 2, seen.set)
    (folder / "part-1.parquet").touch()
    (folder / ".part-1.parquet.crc").touch()
    assert not seen.wait(0.2)
    (folder / "part-2.parquet").touch()
    assert seen.wait(5)
    watch.stop()
