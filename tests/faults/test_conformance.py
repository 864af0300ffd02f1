"""Whether a trace is a path of the model: right ones pass, wrong ones are refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rivermouth.protocol.offsets import OffsetRange
from tests.builders import PIPELINE, TOPIC
from tests.doubles import STEPS, accept_in
from tests.faults.model.configurations import OBJECTS
from tests.faults.model.conformance import check_trace
from tests.faults.model.recorder import Recorder, work
from tests.faults.model.roaming import Roaming
from tests.faults.model.story import Range, Story, is_refused

pytestmark = pytest.mark.unit

HERE = ((0, 5, 5), (1, 3, 3))
"""What an entry covers that reads nothing after ``a_run``."""
ANEW = ((0, 0, 0), (1, 0, 0))


def a_run() -> Story:
    """Two partitions born, then a batch of each."""
    story = Story().opened().committed(*ANEW, kind="discovery")
    return story.committed((0, 0, 5), (1, 0, 3))


def ended() -> Story:
    """The same, and its end."""
    return a_run().said("close")


def restored() -> Story:
    """Entries 1 to 3, then back to 2; the next run halts for it."""
    story = a_run().committed((0, 5, 9)).said("close").did("RESTORE", version=2)
    return story.said("halt", "b", code="RM411")


def resumed(story: Story, **accepts: object) -> Story:
    story.opened("c", accept="restore").planned(*HERE, kind="resume", by="c")
    accepted = {"kind": "restore", "version": 4, "standing": 2, **accepts}
    return story.wrote(*HERE, by="c", accepts=accepted).settled("c")


def created_again(*ranges: Range) -> Story:
    """Both partitions are read to 5 and 3; then the topic is another one, and that is accepted."""
    story = ended().said("halt", "b", code="RM404").opened("c", accept="topic")
    return changed(story, *ranges, by="c")


def changed(story: Story, *ranges: Range, by: str) -> Story:
    story.planned(*ranges, kind="resume", by=by)
    return story.wrote(*ranges, by=by, changes={"kinds": ["topic"]}).settled(by)


# Right ones


def a_second_run() -> Story:
    story = a_run().committed((0, 5, 9)).said("close")
    return story.opened("b").committed((1, 3, 4), by="b").said("close", "b")


def a_driver_that_tries_again_halts_and_opens_in_the_same_process() -> Story:
    story = a_run().said("halt", code="RM301").opened().committed((0, 5, 9))
    story.planned((1, 3, 6)).wrote((1, 3, 6)).ended(fault="Py4JError").projected_to(4)
    return story.said("close")


def an_answer_that_was_lost_is_none() -> Story:
    return a_run().planned((0, 5, 9)).wrote((0, 5, 9)).ended(fault="Py4JError").projected_to(3)


def a_driver_that_died_before_its_commit_left_nothing() -> Story:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9)).not_landed()
    return story.opened("b").committed((0, 5, 7), by="b")


def a_write_that_failed_may_be_tried_again() -> Story:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9)).did("OPTIMIZE")
    return story.ended("absent", "CommitConflict").not_landed().wrote((0, 5, 9)).settled()


def a_restore_that_was_accepted_is_read_again() -> Story:
    return resumed(restored()).opened("d").committed((0, 5, 11), by="d")


def an_operator_may_accept_after_a_driver_died_in_its_commit() -> Story:
    story = a_run().planned((0, 5, 9), (1, 3, 4)).wrote((0, 5, 9), (1, 3, 4))
    story.said("halt", "b", code="RM404").opened("c", accept="topic").projected_to(3, "c")
    return changed(story, *ANEW, by="c")


def a_partition_may_be_added_after_a_topic_was_created_again() -> Story:
    story = created_again(*ANEW).opened("d")
    return story.committed((2, 0, 0), kind="discovery", by="d").committed((2, 0, 3), by="d")


def a_command_may_die_before_it_accepts_a_delete_and_another_one_accept_it() -> Story:
    here = (*HERE, (2, 0, 0))
    story = a_run().committed((2, 0, 0), kind="discovery").said("close")
    story.did("DELETE", predicate='["(id < 3)"]')
    for each in ("b", "c"):
        story.opened(each, accept="deletes", versions=[4]).planned(*here, kind="resume", by=each)
    story.wrote(*here, by="c", deletes=[{"version": 4}]).settled("c").opened("d")
    return story.committed((0, 5, 9), by="d")


def a_replay_applies_records_once_more_and_moves_nothing_and_its_process_may_then_run() -> Story:
    story = ended().opened("b", accept="replay").opened("c", accept="replay")
    story.planned(*HERE, kind="replay", by="c").wrote(*HERE, by="c", replayed=[]).settled("c")
    return story.opened("c").committed((0, 5, 9), by="c").said("close", "c")


def a_partition_may_lose_its_first_records_before_it_is_seen() -> Story:
    story = ended().opened("b").committed((0, 5, 8), (2, 0, 4), kind="loss", by="b")
    return story.committed((0, 8, 9), (2, 4, 6), by="b")


def a_run_may_be_killed_before_it_records_a_loss_that_was_recorded_before_a_restore() -> Story:
    story = ended().opened("b").committed((0, 5, 8), kind="loss", by="b").said("close", "b")
    story.did("RESTORE", version=2).said("halt", "b", code="RM411")
    resumed(story).opened("d")
    return story.opened("e").committed((0, 5, 8), kind="loss", by="e")


def a_command_may_die_before_it_accepts_a_topic_to_which_a_partition_is_added_later() -> Story:
    story = ended().said("halt", "b", code="RM404").opened("c", accept="topic")
    story.planned(*ANEW, kind="resume", by="c").opened("d", accept="topic")
    changed(story, *ANEW, by="d").opened("e").committed((2, 0, 0), kind="discovery", by="e")
    return story.committed((2, 0, 3), by="e")


def a_loss_may_be_recorded_and_a_partition_be_born_in_the_same_entry() -> Story:
    story = ended().opened("b").committed((0, 5, 8), (2, 4, 4), kind="loss", by="b")
    return story.committed((0, 8, 9), (2, 4, 6), by="b")


def what_comes_before_the_trace_is_taken_as_given() -> Story:
    story = a_run().committed((0, 5, 9))
    story.lines.clear()
    return story.opened("b").committed((0, 9, 12), by="b")


def a_driver_goes_on_while_its_entries_are_projected() -> Story:
    return a_run().without("project", "project").committed((0, 5, 9)).said("close")


def entries_may_be_projected_together_while_the_next_one_is_planned() -> Story:
    story = a_run().without("project").planned((0, 5, 9)).projected_to(2).wrote((0, 5, 9))
    return story.settled().said("close")


def left_unprojected() -> Story:
    """A driver was killed that had not projected its last two entries."""
    return a_run().without("project").committed((0, 5, 9)).without("project")


def a_driver_that_is_killed_may_leave_several_entries_that_the_next_one_projects() -> Story:
    story = left_unprojected().opened("b", projected=1).projected_to(3, "b")
    return story.committed((0, 9, 12), by="b").said("close", "b")


def a_driver_that_halts_still_projects_what_it_committed() -> Story:
    story = a_run().without("project").did("RESTORE", version=1).planned((0, 5, 9))
    return story.wrote((0, 5, 9)).ended().projected_to(2).said("halt", code="RM410")


def over_a_restore() -> Story:
    """A batch was written over commits that were rolled back, which its driver has read by now."""
    story = a_run().did("RESTORE", version=1).planned((0, 5, 9)).wrote((0, 5, 9))
    return story.ended()


def a_dead_driver_and_a_command() -> Story:
    """A RESTORE took back what a driver had not projected; a command projects it, and accepts."""
    story = a_run().planned((0, 5, 9)).wrote((0, 5, 9)).did("RESTORE", version=2)
    story.opened("b", accept="restore").projected_to(3, "b")
    return story.planned(*HERE, kind="resume", by="b")


def deletes_accepted(version: int) -> Story:
    """The DELETE of version 3 was taken back, that of version 5 was not."""
    story = ended().did("DELETE", predicate="some").did("RESTORE", version=2)
    return story.did("DELETE", predicate="some").opened("c", accept="deletes", versions=[version])


def from_the_offsets_table(*here: Range) -> Story:
    """A position that is stamped anew once log clean-up has taken all entries."""
    story = a_run().did("OPTIMIZE")
    story.lines.clear()
    del story.log[:3]
    story.opened("b").planned(*here, kind="heartbeat", by="b").announced(*here, by="b")
    return story.landed().settled("b")


def killed_after_its_commit(left: int) -> Story:
    """The last of write, returned, read_back and project are never said."""
    story = a_run().committed((0, 5, 9))
    del story.lines[-left:]
    story.projected = 2
    return story.opened("b").projected_to(3, "b").committed((0, 9, 12), by="b")


def a_third_partition_at(start: int) -> Story:
    """A topic that was created again has a partition that the ledger did not know."""
    story = created_again(*ANEW, (2, start, start))
    return story.opened("d").committed((0, 0, 2), (2, start, start + 3), by="d")


RIGHT: tuple[Callable[[], Story], ...] = (
    a_second_run,
    a_driver_that_tries_again_halts_and_opens_in_the_same_process,
    an_answer_that_was_lost_is_none,
    a_driver_that_died_before_its_commit_left_nothing,
    a_write_that_failed_may_be_tried_again,
    a_restore_that_was_accepted_is_read_again,
    an_operator_may_accept_after_a_driver_died_in_its_commit,
    a_partition_may_be_added_after_a_topic_was_created_again,
    a_command_may_die_before_it_accepts_a_delete_and_another_one_accept_it,
    a_replay_applies_records_once_more_and_moves_nothing_and_its_process_may_then_run,
    a_partition_may_lose_its_first_records_before_it_is_seen,
    a_run_may_be_killed_before_it_records_a_loss_that_was_recorded_before_a_restore,
    a_command_may_die_before_it_accepts_a_topic_to_which_a_partition_is_added_later,
    a_loss_may_be_recorded_and_a_partition_be_born_in_the_same_entry,
    what_comes_before_the_trace_is_taken_as_given,
    a_driver_goes_on_while_its_entries_are_projected,
    entries_may_be_projected_together_while_the_next_one_is_planned,
    a_driver_that_is_killed_may_leave_several_entries_that_the_next_one_projects,
    a_driver_that_halts_still_projects_what_it_committed,
    a_dead_driver_and_a_command,
    *(partial(killed_after_its_commit, left) for left in (1, 2, 3)),
    *(partial(a_third_partition_at, start) for start in (0, 4)),
    *(partial(from_the_offsets_table, *here) for here in ((), HERE)),
    partial(deletes_accepted, 5),
    lambda: over_a_restore().said("halt", code="RM410"),
    lambda: ended().said("halt", "b", code="RM406"),
)


@pytest.mark.parametrize("story", RIGHT, ids=lambda each: getattr(each, "__name__", "story"))
def test_a_right_story_is_a_path(story: Callable[[], Story]) -> None:
    assert story().check() == []


# Wrong ones: each is a right one with one thing changed


def other_than_written() -> Story:
    story = a_run().committed((0, 5, 9))
    story.log[-1]["entry"]["ranges"][0][3] = 8
    story.log[-1]["entry"]["position"][TOPIC]["0"] = 8
    return story


def a_commit_id_again() -> Story:
    story = a_run().planned((0, 5, 9)).announced((0, 5, 9))
    story.lines[-1]["commit"] = "c2"
    return story


def nobodys_commit() -> Story:
    return a_run().planned((0, 5, 9)).wrote((0, 5, 9)).without("plan", "write")


def a_change_without_its_mark() -> Story:
    story = created_again(*ANEW)
    del story.log[-1]["entry"]["changes"]
    return story


def skipped(step: str) -> Story:
    return a_run().committed((0, 5, 9)).without(step)


def opened_with(**facts: object) -> Story:
    return ended().opened("b", **facts)


def announced() -> Story:
    return a_run().planned((0, 5, 9)).announced((0, 5, 9))


WRONG: tuple[tuple[Callable[[], Story], str], ...] = (
    (partial(skipped, "plan"), "write, but the driver has nothing under way"),
    (partial(skipped, "write"), "returned, but the driver has planned and not written"),
    (partial(skipped, "returned"), "read_back, but the driver has a write under way"),
    (partial(skipped, "read_back"), "project, but the driver has not read back"),
    (
        lambda: left_unprojected().opened("b", projected=1).projected_to(2, "b"),
        "project says sequence 2; it is 1",
    ),
    (
        lambda: a_run().without("project").said("close"),
        "close, but the driver…not projected its entry",
    ),
    (nobodys_commit, "at the end…version 3 holds entry 3…no living driver"),
    (
        lambda: a_run().planned((0, 3, 9)),
        "plan of batch [3,9)…the ledger stands at 5…(t-0)",
    ),
    (lambda: a_run().planned((1, 4, 9)), "plan of batch [4,9)…stands at 3…(t-1)"),
    (lambda: Story().opened().planned((0, 0, 5)), "discovery comes first"),
    (partial(opened_with, sequence=1), "open says sequence 1; it is 2"),
    (partial(opened_with, standing=1), "open says standing 1; it is 2"),
    (partial(opened_with, projected=1), "open says projected 1; it is 2"),
    (
        partial(opened_with, position={TOPIC: {"0": 5, "1": 2}}),
        "open says position 2; it is 3",
    ),
    (lambda: restored().opened("c"), "open, where the model halts with RM411"),
    (
        lambda: a_run().opened("b").committed((0, 5, 9)),
        "a start while a lives and holds the lock [b]",
    ),
    (lambda: a_run().said("project", sequence=4), "project says sequence 4; it is 2"),
    (
        lambda: a_run().without("project").opened("b", projected=1).planned((0, 5, 9), by="b"),
        "plan, but the driver has not brought the offsets table up to date",
    ),
    (
        lambda: a_dead_driver_and_a_command().without("project"),
        "has not brought the offsets table up to date",
    ),
    (
        lambda: over_a_restore().projected_to(3),
        "project, but the driver has halted with RM410",
    ),
    (
        lambda: over_a_restore().said("halt", code="RM503"),
        "halt says RM503; the model halts with RM410",
    ),
    (
        lambda: a_run().planned((0, 5, 9)).wrote((0, 5, 8)),
        "write says range (5, 8); it is (5, 9)",
    ),
    (other_than_written, "returned says entry in the log (3, 5, 8, 0); it is (3, 5, 9, 0)"),
    (a_commit_id_again, "write under commit id c2, which was used before"),
    (lambda: announced().ended(fault="Py4JError"), "read_back says committed; it is absent"),
    (
        lambda: announced().said("returned", commit="c3", fault=None),
        "neither it nor a rival",
    ),
    (lambda: ended().said("halt", "b", code="RM411"), "RM411, which nothing in the"),
    (
        lambda: ended().opened("c", accept="restore"),
        "open, but there is nothing to accept",
    ),
    (lambda: ended().planned((0, 5, 5), kind="resume", by="c"), "is not in a run"),
    (
        lambda: ended().opened("b", accept="replay").planned((0, 5, 9), kind="replay", by="b"),
        "plan of heartbeat [5,9)",
    ),
    (partial(deletes_accepted, 3), "version 3 is no DELETE that is to be accepted"),
    (
        lambda: Story().opened().committed((0, 5, 8), kind="loss"),
        "plan of loss [5,8)…discovery comes first",
    ),
    (
        lambda: restored().opened("c", accept="reset"),
        "reset is to be accepted; it is resume",
    ),
    (
        lambda: restored().opened("c", accept="banana"),
        "'banana' is to be accepted; there is no such thing",
    ),
    (a_change_without_its_mark, "kind of entry in the log batch; it is change"),
)


@pytest.mark.parametrize(("story", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_story_with_one_thing_changed_is_refused(story: Callable[[], Story], words: str) -> None:
    is_refused(story(), words)


def test_a_refusal_names_line_step_process_and_partitions() -> None:
    text = "line 10: project, but the driver has not read back what became of its write [a]"
    assert a_run().without("read_back").check() == [f"{text} (t-0, t-1)"]


def test_only_the_undoing_that_happened_can_be_accepted() -> None:
    [first, _] = resumed(restored(), version=2).check()
    assert "entry in the log (4, 3, 3, 2); it is (4, 3, 3, 4)" in first


def test_a_partition_that_is_seen_later_loses_nothing_before_its_first_entry() -> None:
    late = ended().opened("b").committed((2, 3, 4), kind="loss", by="b")
    assert "plan of loss [3,4)" in late.check()[0]


@pytest.mark.parametrize("more", [{}, {"accepts": {"kind": "restore", "version": 99}}])
def test_a_command_writes_an_entry_that_accepts_what_it_was_told(more: dict[str, Any]) -> None:
    story = restored().opened("c", accept="restore")
    story.planned(*HERE, kind="resume", by="c").wrote(*HERE, by="c", **more).settled("c")
    assert "entry in the log" in story.check()[0]


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


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_the_real_code_killed_anywhere_walks_a_path_of_the_model(
    recorder: Recorder, step: str, at: int
) -> None:
    work(recorder, step, at)
    work(recorder)
    assert recorder.lines
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
        recorder.accepts("topic", step)
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
    recorder.accepts("restore")
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
