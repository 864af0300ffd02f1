"""Whether a trace of records that are sent is a path of the model: right ones, and wrong ones."""

from __future__ import annotations

import pytest

from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, ROWS
from tests.faults.model.story import Story, refusal

pytestmark = pytest.mark.unit


def least() -> Story:
    """Two partitions born, then a batch of each that is sent before its commit."""
    story = Story(effect=AT_LEAST_ONCE).opened()
    story.committed((0, 0, 0), (1, 0, 0), kind="discovery")
    return before(story, (0, 0, 5), (1, 0, 3))


def before(story: Story, *ranges: tuple[int, int, int], by: str = "a") -> Story:
    """A batch that is sent, committed, and read back."""
    story.planned(*ranges, by=by).announced(*ranges, by=by).sent(by).landed()
    return story.settled(by)


def most(*ranges: tuple[int, int, int]) -> Story:
    """Two partitions born, then a batch that is committed, read back, and not sent yet."""
    story = Story(effect=AT_MOST_ONCE).opened()
    story.committed((0, 0, 0), (1, 0, 0), kind="discovery")
    return story.committed(*(ranges or ((0, 0, 5), (1, 0, 3))))


def after(story: Story, *ranges: tuple[int, int, int], by: str = "a") -> Story:
    """A batch that is committed, read back, and sent."""
    return story.committed(*ranges, by=by).sent(by)


def without(story: Story, *steps: str) -> Story:
    """The story without the last line of each of these steps."""
    for step in steps:
        last = [n for n, each in enumerate(story.lines) if each["step"] == step][-1]
        del story.lines[last]
    return story


# At least once


def test_batches_that_are_sent_first_are_a_path() -> None:
    assert before(least(), (0, 5, 9)).said("close").check() == []


def test_a_driver_may_be_killed_once_its_records_are_sent_and_the_next_one_sends_them_again() -> (
    None
):
    story = least().planned((0, 5, 9)).announced((0, 5, 9)).sent()
    story.sequence, story.position["t"]["0"], story.attempt = 2, 5, " again"
    assert before(story.opened("b"), (0, 5, 7), by="b").check() == []


def test_a_commit_that_is_tried_again_does_not_send_again() -> None:
    story = least().planned((0, 5, 9)).announced((0, 5, 9)).sent().did("OPTIMIZE")
    story.said("returned", commit="c3", fault="CommitConflict")
    story.said("read_back", commit="c3", outcome="absent", version=3)
    story.sequence, story.attempt = 2, " again"
    assert story.announced((0, 5, 9)).landed().settled().check() == []


def test_a_commit_that_is_tried_again_and_sends_again_is_refused() -> None:
    story = least().planned((0, 5, 9)).announced((0, 5, 9)).sent().did("OPTIMIZE")
    story.said("returned", commit="c3", fault="CommitConflict")
    story.said("read_back", commit="c3", outcome="absent", version=3)
    story.sequence, story.attempt = 2, " again"
    refusal(story.announced((0, 5, 9)).sent(), "acknowledged these records before")


def test_a_sink_that_does_not_take_all_ends_the_batch() -> None:
    story = least().planned((0, 5, 9)).announced((0, 5, 9)).said("send", commit="c3")
    story.said("returned", commit="c3", fault="NotSent")
    story.said("read_back", commit="c3", outcome="absent", version=2)
    assert story.said("halt", code="RM507").check() == []


def test_a_commit_before_the_sink_has_all_is_refused() -> None:
    refusal(without(least(), "sent"), "no sink had acknowledged")
    refusal(without(least(), "send", "sent"), "no sink had acknowledged")


def test_a_batch_without_a_good_record_sends_nothing() -> None:
    story = without(least(), "send", "sent")
    story.log[-1]["entry"]["rows"] = [[0, 5], [0, 3]]
    assert story.check() == []


def test_a_write_that_returns_without_a_fault_has_sent_all() -> None:
    story = least().planned((0, 5, 9), (1, 3, 4)).announced((0, 5, 9), (1, 3, 4))
    refusal(story.said("returned", commit="c3", fault=None), "not all records were sent")


def test_records_are_sent_under_the_commit_that_was_written() -> None:
    story = least()
    story.lines[-5]["commit"] = "c1"
    refusal(story, "send says commit c1; it is c2")


# At most once


def test_batches_that_are_sent_last_are_a_path() -> None:
    assert after(most().sent(), (0, 5, 9)).said("close").check() == []


@pytest.mark.parametrize("left", range(6))
def test_a_driver_may_be_killed_before_it_has_sent_what_it_committed(left: int) -> None:
    story = most().sent()
    del story.lines[len(story.lines) - left :]
    story.projected = 1 if left > 2 else 2
    story.opened("b")
    if left > 2:
        story.projected_to(2, "b")
    assert after(story, (0, 5, 9), by="b").check() == []


@pytest.mark.parametrize("step", ["write", "returned"])
def test_records_that_are_sent_before_their_commit_was_read_back_are_refused(step: str) -> None:
    story = most()
    at = [n for n, each in enumerate(story.lines) if each["step"] == step][-1]
    story.lines.insert(at + 1, {**story.lines[at], "step": "send"})
    refusal(story, "send, but the driver has")


def test_a_driver_goes_on_only_once_all_is_sent() -> None:
    refusal(most().planned((0, 5, 9)), "plan, but the driver has just committed")
    refusal(most().said("send", commit="c2").planned((0, 5, 9)), "plan, but the driver")
    refusal(most().said("close"), "close, but the driver has just committed")


def test_a_partition_without_a_record_in_the_batch_sends_nothing() -> None:
    assert after(most((0, 0, 5)).sent(), (1, 0, 3)).said("close").check() == []


# Others


def test_a_pipeline_that_writes_a_table_sends_nothing() -> None:
    story = least()
    story.effect = ROWS
    refusal(story, "send, by a pipeline that sends nothing")
    assert without(story, "send", "sent").check() == []
