"""Whether a trace of records that are sent is a path of the model: right ones, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, ROWS
from tests.faults.model.story import Range, Story, is_refused

pytestmark = pytest.mark.unit


def least() -> Story:
    """Two partitions born, then a batch of each that is sent before its commit."""
    story = Story(effect=AT_LEAST_ONCE).opened()
    story.committed((0, 0, 0), (1, 0, 0), kind="discovery")
    return before(story, (0, 0, 5), (1, 0, 3))


def before(story: Story, *ranges: Range, by: str = "a") -> Story:
    """A batch that is sent, committed, and read back."""
    return story.planned(*ranges, by=by).announced(*ranges, by=by).sent(by).landed().settled(by)


def most(*ranges: Range) -> Story:
    """Two partitions born, then a batch that is committed, read back, and not sent yet."""
    story = Story(effect=AT_MOST_ONCE).opened()
    story.committed((0, 0, 0), (1, 0, 0), kind="discovery")
    return story.committed(*(ranges or ((0, 0, 5), (1, 0, 3))))


def after(story: Story, *ranges: Range, by: str = "a") -> Story:
    """A batch that is committed, read back, and sent."""
    return story.committed(*ranges, by=by).sent(by)


def sent() -> Story:
    """The next batch is sent before its commit."""
    return least().planned((0, 5, 9)).announced((0, 5, 9)).sent()


def tried_again() -> Story:
    """OPTIMIZE was in the way of its commit; the next attempt is about to write."""
    story = sent().did("OPTIMIZE").ended("absent", "CommitConflict")
    return story.not_landed().announced((0, 5, 9))


def refused_by_its_sink() -> Story:
    story = least().planned((0, 5, 9)).announced((0, 5, 9)).said("send", commit="c3")
    return story.ended("absent", "NotSent").said("halt", code="RM507")


def no_good_record() -> Story:
    story = least().without("send", "sent")
    story.log[-1]["entry"]["rows"] = [[0, 5], [0, 3]]
    return story


def killed_before_it_sent(left: int) -> Story:
    """The last of write, returned, read_back, project, send and sent are never said."""
    story = most().sent()
    del story.lines[len(story.lines) - left :]
    story.projected = 1 if left > 2 else 2
    story.opened("b")
    if left > 2:
        story.projected_to(2, "b")
    return after(story, (0, 5, 9), by="b")


def into_a_table(story: Story) -> Story:
    story.effect = ROWS
    return story


RIGHT: dict[str, Callable[[], Story]] = {
    "batches that are sent first": lambda: before(least(), (0, 5, 9)).said("close"),
    "the next driver sends again what a killed one had sent": (
        lambda: before(sent().not_landed().opened("b"), (0, 5, 7), by="b")
    ),
    "a commit that is tried again does not send again": lambda: tried_again().landed().settled(),
    "a sink that does not take all ends the batch": refused_by_its_sink,
    "a batch without a good record sends nothing": no_good_record,
    "batches that are sent last": lambda: after(most().sent(), (0, 5, 9)).said("close"),
    "a partition without a record in the batch sends nothing": (
        lambda: after(most((0, 0, 5)).sent(), (1, 0, 3)).said("close")
    ),
    "a pipeline that writes a table": lambda: into_a_table(least().without("send", "sent")),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_story_is_a_path(name: str) -> None:
    assert RIGHT[name]().check() == []


@pytest.mark.parametrize("left", range(6))
def test_a_driver_may_be_killed_before_it_has_sent_what_it_committed(left: int) -> None:
    assert killed_before_it_sent(left).check() == []


def another_commit() -> Story:
    story = least()
    story.lines[story.last("send")]["commit"] = "c1"
    return story


def sent_right_after(step: str) -> Story:
    """Before the commit was read back."""
    story = most()
    at = story.last(step)
    story.lines.insert(at + 1, {**story.lines[at], "step": "send"})
    return story


WRONG: dict[str, tuple[Callable[[], Story], str]] = {
    "again by a second attempt": (
        lambda: tried_again().sent(),
        "acknowledged these records before",
    ),
    "not all before the commit": (lambda: least().without("sent"), "no sink had acknowledged"),
    "nothing before the commit": (
        lambda: least().without("send", "sent"),
        "no sink had acknowledged",
    ),
    "not all, and the write returns without a fault": (
        lambda: (
            least()
            .planned((0, 5, 9), (1, 3, 4))
            .announced((0, 5, 9), (1, 3, 4))
            .said("returned", commit="c3", fault=None)
        ),
        "not all records were sent",
    ),
    "under another commit": (another_commit, "send says commit c1; it is c2"),
    "last, right after write": (lambda: sent_right_after("write"), "send, but the driver has"),
    "last, and not read back": (lambda: sent_right_after("returned"), "send, but the driver has"),
    "last, a plan comes first": (
        lambda: most().planned((0, 5, 9)),
        "plan, but the driver has just committed",
    ),
    "last, a plan comes before all is there": (
        lambda: most().said("send", commit="c2").planned((0, 5, 9)),
        "plan, but the driver",
    ),
    "last, the end comes first": (
        lambda: most().said("close"),
        "close, but the driver has just committed",
    ),
    "into a table": (lambda: into_a_table(least()), "send, by a pipeline that sends nothing"),
}


@pytest.mark.parametrize("name", WRONG)
def test_records_that_are_not_sent_or_at_the_wrong_moment_are_refused(name: str) -> None:
    story, words = WRONG[name]
    is_refused(story(), words)
