"""Whether a trace of batches during which Kafka is looked at is a path of the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import place
from tests.doubles import STEPS
from tests.faults.model.recorder import Recorder, work
from tests.faults.model.story import Range, Story, is_refused

pytestmark = pytest.mark.unit


def born() -> Story:
    """One partition is known, and has no record yet."""
    return Story().opened().committed((0, 0, 0), kind="discovery")


def reading(story: Story, *ranges: Range, by: str = "a") -> Story:
    """A batch is planned, and its write begins; Kafka is looked at meanwhile."""
    return story.planned(*ranges, by=by, beside=True).announced(*ranges, by=by)


def saw(story: Story, by: str = "a") -> Story:
    return story.said("see", by, commit=story.commit, again=False)


def looked(*, as_files: bool = True) -> Story:
    """A batch was committed after its look, and is to return."""
    story = saw(reading(born(), (0, 0, 5))).landed()
    return story.as_files() if as_files else story


def repeated(looks: bool) -> Story:
    """An attempt in whose way OPTIMIZE was; the next one looks again, or does not."""
    story = saw(reading(born(), (0, 0, 5))).did("OPTIMIZE").ended("absent", "CommitConflict")
    story.not_landed().announced((0, 0, 5))
    return (saw(story) if looks else story).landed().as_files().settled()


def killed_before_its_look() -> Story:
    story = reading(born(), (0, 0, 5)).not_landed().opened("b")
    return saw(reading(story, (0, 0, 3), by="b"), "b").landed().as_files().settled("b")


def halted_by_its_look() -> Story:
    story = reading(born(), (0, 0, 5)).ended("absent", "TopicRecreated")
    return story.said("halt", code="RM404")


RIGHT: dict[str, Callable[[], Story]] = {
    "a batch that waited for its look": lambda: looked().settled().said("close"),
    "Spark reads after the look": lambda: looked(as_files=False).settled(),
    "a driver that is killed before its look leaves nothing": killed_before_its_look,
    "a driver is killed between its look and its commit": (
        lambda: saw(reading(born(), (0, 0, 5))).not_landed().opened("b")
    ),
    "a look halts the driver": halted_by_its_look,
    "an attempt that is repeated looks again": lambda: repeated(looks=True),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_story_is_a_path(name: str) -> None:
    assert RIGHT[name]().check() == []


def once_it_has_returned() -> Story:
    story = looked().settled()
    look = story.lines.pop(story.last("see"))
    story.lines.insert(story.last("returned") + 1, look)
    return story


def at_another_commit() -> Story:
    story = looked().settled()
    look = story.last("see")
    story.lines.insert(look, {**story.lines[look], "commit": "c9"})
    return story


NOBODY = "landed, and nobody had looked at Kafka"
WRONG: dict[str, tuple[Callable[[], Story], str]] = {
    "no look": (
        lambda: reading(born(), (0, 0, 5)).landed().as_files().settled(),
        f"line 8: commit c2 {NOBODY} [a]",
    ),
    "no look before a commit by Spark": (
        lambda: reading(born(), (0, 0, 5)).landed().settled(),
        NOBODY,
    ),
    "no look of the second attempt": (lambda: repeated(looks=False), f"c2 again {NOBODY}"),
    "once the write has returned": (
        once_it_has_returned,
        "see, but the driver has not read back",
    ),
    "at another commit": (at_another_commit, "see says commit c9; it is c2"),
    "of a batch that was planned after one": (
        lambda: saw(born().planned((0, 0, 5)).announced((0, 0, 5))).landed().as_files().settled(),
        "see, but that was not planned",
    ),
    "a second one": (
        lambda: saw(saw(reading(born(), (0, 0, 5)))).landed().settled(),
        "it was looked at before",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_look_that_was_not_or_comes_at_the_wrong_moment_is_refused(name: str) -> None:
    story, words = WRONG[name]
    is_refused(story(), words)


# What the real code does, over edges in memory


@pytest.fixture(autouse=True)
def beside(recorder: Recorder) -> None:
    recorder.world.staging_reads = True


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
    looks_again = [each for each in recorder.lines if '"see"' in each]
    assert ['"again": true' in each for each in looks_again] == [False, True]
    assert recorder.check() == []
