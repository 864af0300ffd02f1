"""Whether a trace over an object store, which may get a commit late, is a path of the model."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import TOPIC
from tests.faults.model.configurations import OBJECTS
from tests.faults.model.conformance import check_trace
from tests.faults.model.recorder import Recorder, as_dict, work
from tests.faults.model.story import Story

pytestmark = pytest.mark.unit


def born() -> Story:
    """One partition, of which nothing was read yet."""
    return Story().opened().committed((0, 0, 0), kind="discovery").as_files()


def overtaken(*, same_run: bool) -> Story:
    """A put is given up, and comes once the batch is planned again: by the same run, or another."""
    story = born().planned((0, 0, 5)).announced((0, 0, 5)).ended("absent", "BatchFailed")
    story.said("halt", code="RM503")
    late, by = story.not_landed().lines[story.last("write")], "a" if same_run else "b"
    story.opened(by).planned((0, 0, 5), by=by).announced((0, 0, 5), by=by)
    story.landed_late(late).as_files().said(
        "returned", by, commit="c2 again", fault="CommitConflict"
    )
    story.said("read_back", by, commit="c2 again", outcome="already committed", version=2)
    return story.said("halt", by, code="RM501" if same_run else "RM403")


def killed() -> Story:
    """A driver is killed while it puts; the put comes after the next one has opened."""
    story = born().planned((0, 0, 5)).announced((0, 0, 5))
    late = story.not_landed().lines[story.last("write")]
    story.opened("b").landed_late(late).as_files()
    return story.planned((0, 0, 3), by="b").said("halt", "b", code="RM301")


@pytest.mark.parametrize("same_run", [True, False])
def test_a_put_that_was_given_up_may_come_late(same_run: bool) -> None:
    assert overtaken(same_run=same_run).check(OBJECTS) == []


def test_a_put_of_a_driver_that_was_killed_may_come_late() -> None:
    assert killed().check(OBJECTS) == []


@pytest.mark.parametrize(("code", "allowed"), [("RM505", True), ("RM803", True), ("RM301", False)])
def test_an_entry_may_be_in_the_offsets_table_though_the_answer_was_lost(
    code: str, allowed: bool
) -> None:
    story = born().planned((0, 0, 5)).wrote((0, 0, 5)).as_files().ended().said("halt", code=code)
    story.projected = 2
    story.opened().planned((0, 5, 8)).wrote((0, 5, 8)).as_files().settled()
    assert (story.check(OBJECTS) == []) == allowed


@pytest.mark.parametrize("told", [0, 1, 2, 3])
def test_a_look_may_be_told_after_what_another_driver_then_did(told: int) -> None:
    """``told``: how many of the three lines at the end of the batch come before it."""
    story = born().planned((0, 0, 5)).announced((0, 0, 5))
    before, ended = story.version, len(story.lines)
    story.landed().as_files().settled()
    old = {"version": before, "sequence": 1, "standing": 1, "projected": 1}
    story.opened("b", position={TOPIC: {"0": 0}}, **old)
    story.lines.insert(ended + told, story.lines.pop())
    story.said("plan", "b", kind="batch", sequence=2, ranges=[[TOPIC, 0, 0, 4]])
    assert story.check(OBJECTS) == []


def test_a_look_that_began_after_a_commit_shows_it() -> None:
    story = born().planned((0, 0, 5))
    story.opened("b").said("close", "b")
    old = {"version": story.version, "sequence": 1, "standing": 1, "position": {TOPIC: {"0": 0}}}
    story.wrote((0, 0, 5)).as_files().ended()
    story.said("halt", "b", code="RM301").opened("b", **old)
    assert "open reads version 1; 2 was there before it" in story.check(OBJECTS)[0]


def test_in_a_folder_no_commit_comes_late() -> None:
    assert "read_back says version 1; it is 2" in overtaken(same_run=True).check()[0]


def test_what_comes_late_takes_no_version_that_is_there() -> None:
    story = overtaken(same_run=True)
    story.log.insert(2, {**story.log[0], "version": 2})
    story.log[3]["version"] = story.lines[story.last("read_back")]["version"] = 3
    assert "should have skipped or refused" in story.check(OBJECTS)[0]


@pytest.mark.parametrize("limit", [2, 3, 9], ids=["less", "the same range", "more"])
@pytest.mark.parametrize("same_run", [True, False])
def test_the_real_code_walks_a_path_where_its_commit_comes_late(
    recorder: Recorder, limit: int, same_run: bool
) -> None:
    name, late = recorder.driver()
    recorder.did(name, late.open)
    assert not recorder.did(name, partial(late.batch, 3, "late"))
    other, again = recorder.driver()
    name = name if same_run else other
    if same_run:
        again.goes_on_after(late)
    recorder.did(name, again.open)
    recorder.world.arrive()
    assert not recorder.did(name, partial(again.batch, limit))
    assert f'"RM{501 if same_run else 403}"' in recorder.lines[-1]
    work(recorder)
    log = [{**as_dict(each), "as_files": True} for each in recorder.world.commits]
    assert check_trace(recorder.lines, log, guards=OBJECTS) == []
