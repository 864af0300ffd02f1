"""The torture campaign: a seed repeats it, a tally goes on with it, and a short one is clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import PIPELINE
from tests.faults.campaign import faults, operating
from tests.faults.campaign.campaign import ROUNDS_OF_A_WORLD, play
from tests.faults.campaign.operating import Order
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.plan import (
    ACCEPTING,
    CALLS,
    ENDINGS,
    HARMLESS,
    OPERATIONS,
    POINTS,
    UNDOING,
    Operation,
    ending_of,
    round_of,
)
from tests.faults.campaign.tally import Tally
from tests.faults.campaign.world import PIPELINES, TABLES, World
from tests.faults.checker.at_length import FORMAT, as_written
from tests.faults.model.story import Story
from tests.faults.small_lake import Small


@pytest.mark.unit
def test_a_seed_repeats_a_campaign_and_another_is_another() -> None:
    assert [round_of(7, n) for n in range(99)] == [round_of(7, n) for n in range(99)]
    assert [round_of(7, n) for n in range(99)] != [round_of(8, n) for n in range(99)]


@pytest.mark.unit
def test_a_campaign_that_aims_kills_there_and_leaves_the_faults_to_the_seed() -> None:
    aims = (CALLS[5], CALLS[9])
    aimed = [round_of(7, n, aims) for n in range(20)]
    assert [each.kill.detail for each in aimed] == [*aims] * 10
    assert [each.faults for each in aimed] == [round_of(7, n).faults for n in range(20)]


@pytest.mark.unit
def test_a_long_campaign_comes_to_every_point_call_kind_and_fault() -> None:
    rounds = [round_of(1, n) for n in range(1100)]
    details = {each.kill.detail for each in rounds}
    assert {f"{point}={times}*kill" for point in POINTS for times in (1, 2, 3)} <= details
    assert {*CALLS} <= details
    kinds = {each.kill.kind for each in rounds}
    assert kinds == {"point", "call", "file", "freeze", "time", "orphan"}
    assert {name for each in rounds for name, _ in each.faults} == {*HARMLESS, *UNDOING}


@pytest.mark.unit
def test_a_long_campaign_does_each_thing_on_purpose_and_kills_who_accepts_it_everywhere() -> None:
    asked = {each for n in range(1000) if (each := round_of(1, n).operation)}
    assert asked == {
        Operation(name, table, point)
        for name in OPERATIONS
        for table in TABLES
        for point in ACCEPTING
    }
    assert [round_of(7, n) for n in range(9)] == [round_of(7, n) for n in range(9)]


@pytest.mark.unit
def test_worlds_end_in_every_way_and_a_seed_repeats_the_end() -> None:
    ends = {ending_of(1, 24 * n) for n in range(99)}
    assert ends == {(end, table) for end in ENDINGS for table in TABLES}
    assert [ending_of(7, n) for n in range(9)] == [ending_of(7, n) for n in range(9)]


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
    assert again.facts()["kills"] == {"total": 3, "call": 1, "point": 2}
    with pytest.raises(ValueError, match="seed 3"):
        Tally.load(file, seed=4)


class OneTable(World):
    """As much of a world as a table needs that was written by hand."""

    def __init__(self, small: Small) -> None:
        self._table = small.table

    def table(self, name: str) -> Path:
        return self._table


@pytest.mark.unit
def test_a_restore_parts_no_acceptance_from_what_it_is_about(tmp_path: Path) -> None:
    small = Small(tmp_path)
    small.broker.add(*((n, 0) for n in range(6)))
    small.batch([(n, 0, 0, n) for n in range(6)], (0, 0, 6))
    version = small.delete("id = 2")
    world, order = OneTable(small), Order("accept-deletes", {"versions": [version]})
    assert not operating.is_accepted(world, "p", order)
    small.stay(deletes=[{"version": version, "rows": {"t": {"0": [2, 1]}}}])
    assert operating.is_accepted(world, "p", order)
    parted = [operating.parts(world, "p", each) for each in range(version + 2)]
    assert parted == [False, True, False], "back to before the DELETE, or to all of it"
    assert faults.position(world, "p") == faults.position(world, "p", version) == {("t", 0): 6}
    small.recreate((1, 1))
    small.changed(["topic"], [["t", 0, 6, 0]], topics={"t": "first"})
    assert operating.is_accepted(world, "p", Order("resume", {"accept": "topic"}))
    assert [operating.parts(world, "p", each) for each in range(4)] == [True] * 3 + [False]
    assert faults.position(world, "p") == {("t", 0): 0}


class StoredStory:
    """A story on disk, as drivers leave it: a trace, and a table with a log."""

    def __init__(self, folder: Path) -> None:
        self.story = Story()
        self._trace, self._log = folder / "trace.jsonl", folder / "table" / "_delta_log"
        self._log.mkdir(parents=True)
        self._paths = Paths(self._trace, {PIPELINE: folder / "table"})
        self._first = 0

    def check(self) -> list[str]:
        self._trace.write_text("".join(json.dumps(each) + "\n" for each in self.story.lines))
        for commit in self.story.log[self._first :]:
            self._write(commit)
        return self._paths.check()

    def _write(self, commit: dict[str, Any]) -> None:
        said = commit["entry"]
        entry = said and json.dumps({"rivermouth": FORMAT, **as_written(said)})
        info = {"operation": commit["operation"], "operationParameters": commit["parameters"]}
        txns = [{"appId": app, "version": number} for app, number in commit["txns"].items()]
        actions = [{"commitInfo": info | {"userMetadata": entry}}, *({"txn": t} for t in txns)]
        file = self._log / f"{commit['version']:020d}.json"
        file.write_text("\n".join(map(json.dumps, actions)))

    def clean_up(self, before: int) -> None:
        self._first = before
        for file in sorted(self._log.glob("*.json"))[:before]:
            file.unlink()


@pytest.fixture
def stored(tmp_path: Path) -> StoredStory:
    """A driver's run that came to its end: discovery, then a batch."""
    stored = StoredStory(tmp_path)
    stored.story.opened().committed((0, 0, 0), kind="discovery").committed((0, 0, 5)).said("close")
    return stored


@pytest.mark.unit
def test_a_trace_that_leaves_the_path_is_refused_and_named(stored: StoredStory) -> None:
    assert stored.check() == []
    stored.story.opened("b").planned((0, 4, 9), by="b")
    [refusal] = stored.check()
    assert refusal.startswith(f"{PIPELINE}, trace after line 12: line 2: plan of batch [4,9)")


@pytest.mark.unit
@pytest.mark.parametrize("asked_before", [True, False])
def test_a_path_goes_on_behind_a_lost_offsets_table_once_it_was_asked_for(
    stored: StoredStory, asked_before: bool
) -> None:
    if asked_before:
        stored.check()
    story = stored.story.opened("b", projected=0).projected_to(2, "b")
    story.committed((0, 5, 9), by="b").said("close", "b")
    assert (stored.check() == []) is asked_before


@pytest.mark.unit
def test_a_path_goes_on_behind_a_log_clean_up(stored: StoredStory) -> None:
    stored.check()
    stored.clean_up(before=2)
    stored.story.opened("b").committed((0, 5, 9), by="b").said("close", "b")
    assert stored.check() == []


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.slow
def test_a_short_campaign_of_real_kills_finds_nothing(tmp_path: Path) -> None:
    tally = Tally(seed=20, rounds=ROUNDS_OF_A_WORLD)  # the first world with other forms than JSON
    play(tmp_path, tally, preloaded=None, rounds=8)
    assert tally.violations == []
    aimed = [name for name in tally.kills if not name.startswith("accepting")]
    assert sum(tally.kills[name] for name in aimed) >= 6
    assert tally.records > 5000
    assert tally.conformed == len(PIPELINES)
    assert tally.faults["topic came"] > 1, "topics come after the first round, too"
    assert sum(tally.faults[each] for each in ENDINGS) == 1
