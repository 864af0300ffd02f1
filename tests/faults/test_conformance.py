"""Whether a trace is a path of the model: right ones pass, wrong ones are refused by name."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import OnDataLoss
from rivermouth.protocol.offsets import OffsetRange
from tests.builders import PIPELINE, TOPIC, place
from tests.doubles import NO_SESSION, STEPS, World, accept_in
from tests.faults.model.configurations import OBJECTS
from tests.faults.model.conformance import check_trace
from tests.faults.model.recorder import Recorder, work
from tests.faults.model.roaming import Roaming
from tests.faults.model.story import Story, refusal

pytestmark = pytest.mark.unit


def a_run() -> Story:
    """Two partitions born, then a batch of each."""
    story = Story().opened().committed((0, 0, 0), (1, 0, 0), kind="discovery")
    return story.committed((0, 0, 5), (1, 0, 3))


# Right ones


def test_a_run_a_second_one_and_the_end_of_both_are_a_path() -> None:
    story = a_run().committed((0, 5, 9)).said("close")
    story.opened("b").committed((1, 3, 4), by="b").said("close", "b")
    assert story.check() == []


def test_a_driver_that_tries_again_halts_and_opens_in_the_same_process() -> None:
    story = a_run().said("halt", code="RM301").opened().committed((0, 5, 9))
    story.planned((1, 3, 6)).wrote((1, 3, 6)).said("returned", commit="c4", fault="Py4JError")
    story.said("read_back", commit="c4", outcome="committed", version=4).projected_to(4)
    assert story.said("close").check() == []


def test_an_answer_that_was_lost_is_none() -> None:
    story = a_run().planned((0, 5, 9)).wrote((0, 5, 9))
    story.said("returned", commit="c3", fault="Py4JError")
    story.said("read_back", commit="c3", outcome="committed", version=3).projected_to(3)
    assert story.check() == []


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_driver_may_be_killed_after_its_commit_and_the_next_one_goes_on(left: int) -> None:
    """The last of write, returned, read_back and project are never said."""
    story = a_run().committed((0, 5, 9))
    del story.lines[-left:]
    story.projected = 2
    story.opened("b").projected_to(3, "b").committed((0, 9, 12), by="b")
    assert story.check() == []


def test_a_driver_that_died_before_its_commit_left_nothing() -> None:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9))
    story.sequence, story.position[TOPIC]["0"] = 2, 5
    story.opened("b").planned((0, 5, 7), by="b").announced((0, 5, 7), by="b")
    story.lines[-1]["commit"] = "other"
    story.landed()
    story.said("returned", "b", commit="other", fault=None)
    story.said("read_back", "b", commit="other", outcome="committed", version=3)
    assert story.projected_to(3, "b").check() == []


def test_a_write_that_failed_may_be_tried_again() -> None:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9)).did("OPTIMIZE")
    story.said("returned", commit="c3", fault="CommitConflict")
    story.said("read_back", commit="c3", outcome="absent", version=3)
    story.sequence = 2
    story.announced((0, 5, 9))
    story.lines[-1]["commit"] = "again"
    story.landed()
    story.said("returned", commit="again", fault=None)
    story.said("read_back", commit="again", outcome="committed", version=4)
    assert story.projected_to(3).check() == []


def restored() -> Story:
    """Entries 1 to 3, then back to 2; the next run halts for it."""
    story = a_run().committed((0, 5, 9)).said("close").did("RESTORE", version=2)
    return story.said("halt", "b", code="RM411")


def resumed(story: Story, **accepts: object) -> Story:
    here = ((0, 5, 5), (1, 3, 3))
    story.opened("c", accept="restore").planned(*here, kind="resume", by="c")
    accepted = {"kind": "restore", "version": 4, "standing": 2, **accepts}
    return story.wrote(*here, by="c", accepts=accepted).settled("c")


def test_a_restore_that_was_accepted_is_read_again() -> None:
    story = resumed(restored()).opened("d").committed((0, 5, 11), by="d")
    assert story.check() == []


def created_again(*ranges: tuple[int, int, int]) -> Story:
    """Both partitions are read to 5 and 3; then the topic is another one, and that is accepted."""
    story = a_run().said("close").said("halt", "b", code="RM404")
    story.opened("c", accept="topic").planned(*ranges, kind="resume", by="c")
    return story.wrote(*ranges, by="c", changes={"kinds": ["topic"]}).settled("c")


@pytest.mark.parametrize("third", [0, 4])
def test_a_topic_created_again_may_have_a_partition_that_the_ledger_did_not_know(
    third: int,
) -> None:
    story = created_again((0, 0, 0), (1, 0, 0), (2, third, third))
    story.opened("d").committed((0, 0, 2), (2, third, 7), by="d")
    assert story.check() == []


def test_an_operator_may_accept_after_a_driver_died_in_its_commit() -> None:
    story = a_run().planned((0, 5, 9), (1, 3, 4)).wrote((0, 5, 9), (1, 3, 4))
    story.said("halt", "b", code="RM404").opened("c", accept="topic").projected_to(3, "c")
    story.planned((0, 0, 0), (1, 0, 0), kind="resume", by="c")
    story.wrote((0, 0, 0), (1, 0, 0), by="c", changes={"kinds": ["topic"]}).settled("c")
    assert story.check() == []


def test_a_partition_may_be_added_after_a_topic_was_created_again() -> None:
    story = created_again((0, 0, 0), (1, 0, 0)).opened("d")
    story.committed((2, 0, 0), kind="discovery", by="d").committed((2, 0, 3), by="d")
    assert story.check() == []


def test_a_command_may_die_before_it_accepts_a_delete_and_another_one_accept_it() -> None:
    here = ((0, 5, 5), (1, 3, 3), (2, 0, 0))
    story = (
        a_run()
        .committed((2, 0, 0), kind="discovery")
        .said("close")
        .did("DELETE", predicate='["(id < 3)"]')
    )
    for each in ("b", "c"):
        story.opened(each, accept="deletes", versions=[4])
        story.planned(*here, kind="resume", by=each)
    story.wrote(*here, by="c", deletes=[{"version": 4}]).settled("c").opened("d")
    assert story.committed((0, 5, 9), by="d").check() == []


def test_a_replay_applies_records_once_more_and_moves_nothing() -> None:
    here = ((0, 5, 5), (1, 3, 3))
    story = a_run().said("close").opened("b", accept="replay").opened("c", accept="replay")
    story.planned(*here, kind="replay", by="c").wrote(*here, by="c", replayed=[]).settled("c")
    # The same process may then run.
    story.opened("c").committed((0, 5, 9), by="c").said("close", "c")
    assert story.check() == []


def test_a_replay_moves_no_offset() -> None:
    story = a_run().said("close").opened("b", accept="replay")
    refusal(story.planned((0, 5, 9), kind="replay", by="b"), "plan of heartbeat [5,9)")


def test_a_partition_may_lose_its_first_records_before_it_is_seen() -> None:
    story = a_run().said("close")
    story.opened("b").committed((0, 5, 8), (2, 0, 4), kind="loss", by="b")
    assert story.committed((0, 8, 9), (2, 4, 6), by="b").check() == []


def test_a_run_may_be_killed_before_it_records_a_loss_that_was_recorded_before_a_restore() -> None:
    story = a_run().said("close").opened("b").committed((0, 5, 8), kind="loss", by="b")
    story.said("close", "b").did("RESTORE", version=2).said("halt", "b", code="RM411")
    here = ((0, 5, 5), (1, 3, 3))
    story.opened("c", accept="restore").planned(*here, kind="resume", by="c")
    accepted = {"kind": "restore", "version": 4, "standing": 2}
    story.wrote(*here, by="c", accepts=accepted).settled("c").opened("d")
    story.opened("e").committed((0, 5, 8), kind="loss", by="e")
    assert story.check() == []


def test_a_command_may_die_before_it_accepts_a_topic_to_which_a_partition_is_added_later() -> None:
    story = a_run().said("close").said("halt", "b", code="RM404")
    for each in ("c", "d"):
        story.opened(each, accept="topic").planned((0, 0, 0), (1, 0, 0), kind="resume", by=each)
    story.wrote((0, 0, 0), (1, 0, 0), by="d", changes={"kinds": ["topic"]}).settled("d")
    story.opened("e").committed((2, 0, 0), kind="discovery", by="e")
    assert story.committed((2, 0, 3), by="e").check() == []


def test_a_loss_may_be_recorded_and_a_partition_be_born_in_the_same_entry() -> None:
    story = a_run().said("close")
    story.opened("b").committed((0, 5, 8), (2, 4, 4), kind="loss", by="b")
    assert story.committed((0, 8, 9), (2, 4, 6), by="b").check() == []


def test_what_comes_before_the_trace_is_taken_as_given() -> None:
    story = a_run().committed((0, 5, 9))
    story.lines.clear()
    assert story.opened("b").committed((0, 9, 12), by="b").check() == []


@pytest.mark.parametrize("here", [(), ((0, 5, 5), (1, 3, 3))], ids=["as it was", "with ranges"])
def test_a_position_that_comes_from_the_offsets_table_is_stamped_anew(
    here: tuple[tuple[int, int, int], ...],
) -> None:
    story = a_run().did("OPTIMIZE")
    story.lines.clear()
    del story.log[:3]
    story.opened("b", version=3)
    story.planned(*here, kind="heartbeat", by="b").announced(*here, by="b")
    story.landed()
    story.log[-1]["version"] = 4
    story.said("returned", "b", commit="c3", fault=None)
    story.said("read_back", "b", commit="c3", outcome="committed", version=4)
    assert story.projected_to(3, "b").check() == []


# Wrong ones: each is a right one with one thing changed


def without(story: Story, step: str, last: bool = True) -> Story:
    found = [n for n, each in enumerate(story.lines) if each["step"] == step]
    del story.lines[found[-1 if last else 0]]
    return story


def test_a_refusal_names_line_step_process_and_partitions() -> None:
    story = without(a_run(), "read_back")
    text = "line 10: project, but the driver has not read back what became of its write [a]"
    assert story.check() == [f"{text} (t-0, t-1)"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("plan", "write, but the driver has nothing under way"),
        ("write", "returned, but the driver has planned and not written"),
        ("returned", "read_back, but the driver has a write under way"),
        ("read_back", "project, but the driver has not read back"),
    ],
)
def test_no_step_may_be_skipped(step: str, reason: str) -> None:
    refusal(without(a_run().committed((0, 5, 9)), step), reason)


def test_a_driver_goes_on_while_its_entries_are_projected_and_they_may_come_together() -> None:
    story = without(without(a_run(), "project"), "project").committed((0, 5, 9))
    assert story.said("close").check() == []
    late = without(a_run(), "project").planned((0, 5, 9)).projected_to(2).wrote((0, 5, 9))
    assert late.settled().said("close").check() == []


def test_a_driver_that_is_killed_may_leave_several_entries_that_the_next_one_projects() -> None:
    story = without(a_run(), "project").committed((0, 5, 9))
    del story.lines[-1]
    story.opened("b", projected=1).projected_to(3, "b")
    assert story.committed((0, 9, 12), by="b").said("close", "b").check() == []
    wrong = without(a_run(), "project").committed((0, 5, 9))
    del wrong.lines[-1]
    refusal(wrong.opened("b", projected=1).projected_to(2, "b"), "project says sequence 2; it is 1")


def test_a_driver_that_halts_still_projects_what_it_committed() -> None:
    story = without(a_run(), "project").did("RESTORE", version=1).planned((0, 5, 9))
    story.wrote((0, 5, 9)).said("returned", commit="c3", fault=None)
    story.said("read_back", commit="c3", outcome="committed", version=4).projected_to(2)
    assert story.said("halt", code="RM410").check() == []


def test_a_run_that_ends_has_projected_all_of_it() -> None:
    refusal(without(a_run(), "project").said("close"), "close, but", "not projected its entry")


def test_a_commit_needs_a_plan_and_somebody_alive() -> None:
    story = a_run().planned((0, 5, 9)).wrote((0, 5, 9))
    del story.lines[-2:]
    refusal(story, "at the end", "version 3 holds entry 3", "no living driver")


def test_a_plan_from_a_stale_position_is_refused() -> None:
    story = a_run().planned((0, 3, 9))
    assert refusal(story, "plan of batch [3,9)", "the ledger stands at 5").endswith("(t-0)")


def test_a_gap_is_refused() -> None:
    refusal(a_run().planned((1, 4, 9)), "plan of batch [4,9)", "stands at 3", "(t-1)")


def test_a_batch_before_the_births_is_refused() -> None:
    refusal(Story().opened().planned((0, 0, 5)), "discovery comes first")


def test_an_open_must_say_what_the_log_says() -> None:
    for name, wrong in (("sequence", 1), ("standing", 1), ("projected", 1)):
        refusal(a_run().said("close").opened("b", **{name: wrong}), f"open says {name} 1; it is 2")
    stale = {TOPIC: {"0": 5, "1": 2}}
    refusal(a_run().said("close").opened("b", position=stale), "open says position 2; it is 3")


def test_an_open_over_a_restore_is_refused() -> None:
    refusal(restored().opened("c"), "open, where the model halts with RM411")


def test_an_open_while_another_driver_lives_is_refused() -> None:
    story = a_run().opened("b").committed((0, 5, 9))
    refusal(story, "a start while a lives and holds the lock [b]")


def test_a_projection_that_the_log_does_not_hold_is_refused() -> None:
    refusal(a_run().said("project", sequence=4), "project says sequence 4; it is 2")


def test_a_start_that_leaves_the_offsets_table_behind_is_refused() -> None:
    story = without(a_run(), "project").opened("b", projected=1).planned((0, 5, 9), by="b")
    refusal(story, "plan, but the driver has not brought the offsets table up to date")


def test_nothing_may_follow_a_halt() -> None:
    story = a_run().did("RESTORE", version=1).planned((0, 5, 9)).wrote((0, 5, 9))
    story.said("returned", commit="c3", fault=None)
    story.said("read_back", commit="c3", outcome="committed", version=4)
    assert story.said("halt", code="RM410").check() == []
    del story.lines[-1]
    refusal(story.projected_to(3), "project, but the driver has halted with RM410")


def test_a_write_of_something_else_than_planned_is_refused() -> None:
    story = a_run().planned((0, 5, 9)).wrote((0, 5, 8))
    refusal(story, "write says range (5, 8); it is (5, 9)")


def test_a_log_that_holds_something_else_than_written_is_refused() -> None:
    story = a_run().committed((0, 5, 9))
    story.log[-1]["entry"]["ranges"][0][3] = 8
    story.log[-1]["entry"]["position"][TOPIC]["0"] = 8
    refusal(story, "returned says entry in the log (3, 5, 8, 0); it is (3, 5, 9, 0)")


def test_a_commit_id_may_not_come_twice() -> None:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9))
    story.lines[-1]["commit"] = "c2"
    refusal(story, "write under commit id c2, which was used before")


def test_a_read_back_must_judge_as_the_log_does() -> None:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9))
    story.said("returned", commit="c3", fault="Py4JError")
    story.said("read_back", commit="c3", outcome="committed", version=2)
    refusal(story, "read_back says committed; it is absent")


def test_a_write_that_vanishes_without_a_word_is_refused() -> None:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9))
    refusal(story.said("returned", commit="c3", fault=None), "neither it nor a rival")


def test_a_halt_that_nothing_explains_is_refused() -> None:
    refusal(a_run().said("close").said("halt", "b", code="RM411"), "RM411, which nothing in the")
    assert a_run().said("close").said("halt", "b", code="RM406").check() == []


def test_a_halt_for_another_reason_than_the_models_is_refused() -> None:
    story = a_run().did("RESTORE", version=1).planned((0, 5, 9)).wrote((0, 5, 9))
    story.said("returned", commit="c3", fault=None)
    story.said("read_back", commit="c3", outcome="committed", version=4)
    refusal(story.said("halt", code="RM503"), "halt says RM503; the model halts with RM410")


def test_only_the_undoing_that_happened_can_be_accepted() -> None:
    [first, _] = resumed(restored(), version=2).check()
    assert "entry in the log (4, 3, 3, 2); it is (4, 3, 3, 4)" in first
    story = a_run().said("close").opened("c", accept="restore")
    refusal(story, "open, but there is nothing to accept")
    refusal(a_run().said("close").planned((0, 5, 5), kind="resume", by="c"), "is not in a run")


def test_a_delete_that_was_taken_back_is_not_accepted() -> None:
    story = a_run().said("close").did("DELETE", predicate="some").did("RESTORE", version=2)
    story.did("DELETE", predicate="some").opened("c", accept="deletes", versions=[3])
    refusal(story, "version 3 is no DELETE that is to be accepted")
    story.lines[-1]["versions"] = [5]
    assert story.check() == []


def test_what_is_lost_before_the_first_entry_is_no_loss() -> None:
    story = Story().opened().committed((0, 5, 8), kind="loss")
    refusal(story, "plan of loss [5,8)", "discovery comes first")
    late = a_run().said("close").opened("b").committed((2, 3, 4), kind="loss", by="b")
    assert "plan of loss [3,4)" in late.check()[0]


def test_a_command_brings_the_offsets_table_up_to_date_before_it_accepts() -> None:
    def story() -> Story:
        dead = a_run().planned((0, 5, 9)).wrote((0, 5, 9)).did("RESTORE", version=2)
        dead.opened("b", accept="restore").projected_to(3, "b")
        return dead.planned((0, 5, 5), (1, 3, 3), kind="resume", by="b")

    assert story().check() == []
    refusal(without(story(), "project"), "has not brought the offsets table up to date")


@pytest.mark.parametrize("more", [{}, {"accepts": {"kind": "restore", "version": 99}}])
def test_a_command_writes_an_entry_that_accepts_what_it_was_told(more: dict[str, Any]) -> None:
    story = restored().opened("c", accept="restore")
    here = ((0, 5, 5), (1, 3, 3))
    story.planned(*here, kind="resume", by="c").wrote(*here, by="c", **more).settled("c")
    assert "entry in the log" in story.check()[0]


@pytest.mark.parametrize("accept", ["reset", "banana"])
def test_a_command_is_told_to_accept_what_happened(accept: str) -> None:
    refusal(restored().opened("c", accept=accept), "is to be accepted")


def test_a_change_is_written_as_one() -> None:
    story = created_again((0, 0, 0), (1, 0, 0))
    del story.log[-1]["entry"]["changes"]
    refusal(story, "kind of entry in the log batch; it is change")


def test_lines_that_are_no_steps_are_named() -> None:
    lines = ["{", '{"process": "a", "pipeline": "p", "step": "dance"}', "[1]"]
    assert check_trace(lines, []) == [
        "line 1: not a step: {",
        "line 2: there is no step 'dance'",
        "line 3: not a step: [1]",
    ]


def test_a_trace_of_several_pipelines_is_checked_one_at_a_time() -> None:
    story = a_run()
    mixed = [json.dumps(each) for each in (*story.lines, {**story.lines[0], "pipeline": "other"})]
    assert check_trace(mixed, story.log) == ["the trace names several pipelines: orders, other"]
    assert check_trace(mixed, story.log, PIPELINE) == []


# What the real code does, over in-memory edges


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(file))
    return Recorder(file, World(ends={place(): 12, place(1): 5}))


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_the_real_code_killed_anywhere_walks_a_path_of_the_model(
    recorder: Recorder, step: str, at: int
) -> None:
    work(recorder, step, at)
    work(recorder)
    assert recorder.lines
    assert recorder.check() == []


def test_the_real_code_walks_a_path_through_a_restore_and_its_acceptance(
    recorder: Recorder,
) -> None:
    work(recorder)
    recorder.world.restore(3)
    work(recorder)
    name, operator = recorder.driver()
    recorder.did(name, lambda: operator.ingest.resume(NO_SESSION, "restore"))
    work(recorder)
    assert sum('"RM411"' in each for each in recorder.lines) == 1
    assert recorder.check() == []


@pytest.mark.parametrize("crash", ["", *STEPS])
def test_the_real_code_walks_a_path_through_another_topic_and_its_acceptance(
    recorder: Recorder, crash: str
) -> None:
    world = recorder.world
    work(recorder)
    world.topics = dict.fromkeys(world.topics, "another")
    world.ends = dict.fromkeys(world.ends, 3)
    work(recorder)
    for step in (crash, ""):
        name, operator = recorder.driver()
        operator.crash.step = step
        recorder.did(name, partial(operator.ingest.resume, NO_SESSION, "topic"))
    work(recorder)
    assert sum('"RM404"' in each for each in recorder.lines) == 1
    assert recorder.check() == []


@pytest.mark.parametrize("crash", ["", *STEPS])
def test_the_real_code_walks_a_path_through_deleted_rows_and_their_acceptance(
    recorder: Recorder, crash: str
) -> None:
    world = recorder.world
    work(recorder)
    where, offset = world.rows.pop()[1]
    world.did("DELETE", predicate="some")
    version = len(world.commits) - 1
    rows = [OffsetRange(where, offset, offset + 1)]
    for number, step in enumerate((crash, "")):
        accept = partial(accept_in, world, version, rows=rows, crash=step)
        recorder.did(f"operator-{number}", accept)
    work(recorder)
    assert recorder.check() == []


def test_the_real_code_walks_a_path_through_a_restore_that_came_into_a_batch(
    recorder: Recorder,
) -> None:
    name, driver = recorder.driver()
    recorder.did(name, driver.open)
    recorder.did(name, lambda: driver.batch(4))
    recorder.world.restore(1)
    assert not recorder.did(name, lambda: driver.batch(4))
    recorder.world.restore(3)
    name, operator = recorder.driver()
    recorder.did(name, lambda: operator.ingest.resume(NO_SESSION, "restore"))
    work(recorder)
    assert recorder.check() == []


def test_the_real_code_walks_a_path_through_retention_and_an_emptied_table(
    recorder: Recorder,
) -> None:
    work(recorder)
    recorder.world.ends[place()] = 20
    recorder.world.low[place()] = 15
    work(recorder)
    work(recorder, on_data_loss=OnDataLoss.RECORD)
    recorder.world.truncate()
    name, operator = recorder.driver()
    recorder.did(name, lambda: operator.ingest.resume(NO_SESSION, "reset"))
    work(recorder)
    assert recorder.check() == []


def test_the_real_code_walks_a_path_through_an_entry_that_is_written_again(
    recorder: Recorder,
) -> None:
    work(recorder)
    recorder.world.now = 11 * 86400.0
    work(recorder)
    assert sum('"heartbeat"' in each for each in recorder.lines) == 1
    assert recorder.check() == []


def test_two_living_drivers_walk_a_path_where_the_store_has_put_if_absent(
    recorder: Recorder,
) -> None:
    slow, fast = recorder.driver(), recorder.driver()
    for name, driver in (slow, fast):
        recorder.did(name, driver.open)
    assert recorder.did(fast[0], lambda: fast[1].batch(4))
    assert not recorder.did(slow[0], lambda: slow[1].batch(3))
    assert recorder.check(guards=OBJECTS) == []
    assert "holds the lock" in recorder.check()[0]


@pytest.mark.short(("seed",), {(each,) for each in range(20)})
@pytest.mark.parametrize("seed", range(120))
def test_the_real_code_walks_a_path_whatever_happens(recorder: Recorder, seed: int) -> None:
    roaming = Roaming(recorder, random.Random(seed))
    recorder.world.staging_reads = seed // 8 % 2 == 1
    roaming.driver_lives()
    cut = 0
    for number in range(8):
        if number == seed % 8:
            cut = len(recorder.lines)  # as the campaign does where no path leads through a fault
        roaming.happen()
        assert recorder.check() == []
        assert recorder.check(since=cut) == []


@pytest.mark.parametrize("seed", range(60))
def test_the_real_code_walks_a_path_where_it_projects_later(recorder: Recorder, seed: int) -> None:
    """Killed at any step with several entries that are not in the offsets table yet."""
    chance = random.Random(seed)
    recorder.world.staging_reads = seed // 8 % 2 == 1
    for _ in range(6):
        recorder.world.ends[place()] = recorder.world.ends.get(place(), 0) + chance.randrange(40)
        name, driver = recorder.driver(late=True)
        lives = recorder.did(name, driver.open)
        for _ in range(chance.randrange(6)):
            crash = chance.choice(("", "", "", *STEPS))
            if chance.randrange(2):
                lives = lives and recorder.did(name, partial(driver.batch, 4, crash))
            else:
                some = partial(driver.project, chance.randrange(3), crash)
                lives = lives and recorder.did(name, some)
        if lives and chance.randrange(2):
            recorder.did(name, driver.project)
            recorder.closed(name)
    work(recorder)
    assert recorder.check() == []


def test_what_a_killed_driver_had_not_projected_is_there_after_the_next_start(
    recorder: Recorder,
) -> None:
    name, driver = recorder.driver(late=True)
    recorder.did(name, driver.open)
    for _ in range(3):
        assert recorder.did(name, lambda: driver.batch(4))
    recorder.did(name, lambda: driver.project(1))
    assert (recorder.world.offsets.sequence(PIPELINE), len(driver.late.waiting)) == (1, 3)
    name, driver = recorder.driver()
    recorder.did(name, driver.open)
    assert recorder.world.offsets.sequence(PIPELINE) == 4
    work(recorder)
    assert recorder.check() == []
