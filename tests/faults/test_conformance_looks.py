"""Whether a trace of batches during which Kafka is looked at is a path of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import place
from tests.doubles import STEPS, World
from tests.faults.model.recorder import Recorder, work
from tests.faults.model.story import Story, refusal

pytestmark = pytest.mark.unit


def born() -> Story:
    """One partition is known, and has no record yet."""
    return Story().opened().committed((0, 0, 0), kind="discovery")


def reading(story: Story, *ranges: tuple[int, int, int], by: str = "a") -> Story:
    """A batch is planned, and its write begins; Kafka is looked at meanwhile."""
    return story.planned(*ranges, by=by, beside=True).announced(*ranges, by=by)


def saw(story: Story, by: str = "a") -> Story:
    return story.said("see", by, commit=story.commit, again=False)


def a_batch() -> Story:
    return saw(reading(born(), (0, 0, 5))).landed().as_files()


def moved(story: Story, step: str, before: str) -> Story:
    """The last line of ``step`` comes before the last one of another step."""
    names = [each["step"] for each in story.lines]
    found = len(names) - 1 - names[::-1].index(step)
    line = story.lines.pop(found)
    names.pop(found)
    story.lines.insert(len(names) - 1 - names[::-1].index(before), line)
    return story


# Right ones


def test_a_batch_that_waited_for_its_look_is_a_path() -> None:
    assert a_batch().settled().said("close").check() == []


def test_spark_may_read_after_the_look() -> None:
    assert saw(reading(born(), (0, 0, 5))).landed().settled().check() == []


def test_a_driver_may_be_killed_before_its_look_and_leaves_nothing() -> None:
    story = reading(born(), (0, 0, 5))
    story.sequence, story.position["t"]["0"], story.attempt = 1, 0, " again"
    story.opened("b")
    saw(reading(story, (0, 0, 3), by="b"), "b").landed().as_files().settled("b")
    assert story.check() == []


def test_a_driver_may_be_killed_between_its_look_and_its_commit() -> None:
    story = saw(reading(born(), (0, 0, 5)))
    story.sequence, story.position["t"]["0"] = 1, 0
    assert story.opened("b").check() == []


def test_a_look_may_halt_the_driver() -> None:
    story = reading(born(), (0, 0, 5)).said("returned", commit="c2", fault="TopicRecreated")
    story.said("read_back", commit="c2", outcome="absent", version=1)
    assert story.said("halt", code="RM404").check() == []


def test_an_attempt_that_is_repeated_looks_again() -> None:
    def story(looks: bool) -> Story:
        told = saw(reading(born(), (0, 0, 5))).did("OPTIMIZE")
        told.said("returned", commit="c2", fault="CommitConflict")
        told.said("read_back", commit="c2", outcome="absent", version=2)
        told.sequence, told.attempt = 1, " again"
        told.announced((0, 0, 5))
        return (saw(told) if looks else told).landed().as_files().settled()

    assert story(True).check() == []
    refusal(story(False), "commit c2 again landed, and nobody had looked at Kafka")


# Wrong ones


def test_a_commit_without_its_look_is_refused() -> None:
    story = reading(born(), (0, 0, 5)).landed().as_files().settled()
    refusal(story, "line 8: commit c2 landed, and nobody had looked at Kafka [a]")
    through_spark = reading(born(), (0, 0, 5)).landed().settled()
    refusal(through_spark, "nobody had looked at Kafka")


def test_a_look_once_the_write_has_returned_is_refused() -> None:
    refusal(moved(a_batch().settled(), "returned", "see"), "see, but the driver has not read back")


def test_a_look_at_another_commit_is_refused() -> None:
    story = a_batch().settled()
    look = next(each for each in story.lines if each["step"] == "see")
    story.lines.insert(story.lines.index(look), {**look, "commit": "c9"})
    refusal(story, "see says commit c9; it is c2")


def test_a_look_beside_a_batch_that_was_planned_after_one_is_refused() -> None:
    story = saw(born().planned((0, 0, 5)).announced((0, 0, 5))).landed().as_files().settled()
    refusal(story, "see, but that was not planned")


def test_a_second_look_at_one_commit_is_refused() -> None:
    refusal(saw(saw(reading(born(), (0, 0, 5)))).landed().settled(), "it was looked at before")


# What the real code does, over edges in memory


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(file))
    return Recorder(file, World(ends={place(): 12, place(1): 5}, staging_reads=True))


def looks(recorder: Recorder) -> int:
    return sum('"see"' in each for each in recorder.lines)


@pytest.mark.parametrize("step", ["", *STEPS])
def test_the_real_code_killed_anywhere_walks_a_path_of_the_model(
    recorder: Recorder, step: str
) -> None:
    work(recorder, step, 1)
    work(recorder)
    assert looks(recorder) >= 2
    assert recorder.check() == []


def test_the_real_code_tells_of_no_look_that_halts_it(recorder: Recorder) -> None:
    name, driver = recorder.driver()
    recorder.did(name, driver.open)
    recorder.world.topics = {"t": "another"}
    assert not recorder.did(name, driver.batch)
    assert looks(recorder) == 0
    assert recorder.check() == []


def test_the_real_code_tells_whether_a_batch_is_read_again(recorder: Recorder) -> None:
    name, driver = recorder.driver()
    recorder.did(name, driver.open)
    recorder.did(name, lambda: driver.batch(4))
    recorder.world.epochs[place()] = 4
    recorder.did(name, driver.batch)
    told = [each for each in recorder.lines if '"see"' in each]
    assert ['"again": true' in each for each in told] == [False, True]
    assert recorder.check() == []
