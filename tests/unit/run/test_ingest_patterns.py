"""Topics by a pattern: found at each opening, read from their first record, missed when gone."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rivermouth.config import Pipeline, Start
from rivermouth.errors import (
    IdentityChanged,
    KafkaUnsettled,
    PartitionGone,
    ResumeRefused,
    TopicMissing,
    TopicRecreated,
)
from rivermouth.protocol.offsets import Position
from tests.builders import place
from tests.doubles import Driver, World, a_pipeline

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("either_place")]

A, B, C = (place(0, topic) for topic in ("in_a", "in_b", "in_c"))


def there(world: World, topics: Iterable[str]) -> World:
    """Kafka has exactly these topics now."""
    world.topics = {topic: f"id-{topic}" for topic in topics}
    return world


def a_world(**ends: int) -> World:
    """Topics of one partition each, with so many records."""
    world = World(ends={place(0, topic): end for topic, end in ends.items()})
    return there(world, ends)


def pattern(start: Start | None = None) -> Pipeline:
    return a_pipeline(pattern="in_.*", start=start)


def read(world: World, pipeline: Pipeline, limit: int = 1 << 30) -> Driver:
    driver = Driver(world, pipeline).open()
    driver.batch(limit)
    return driver


def test_whole_names_match_and_no_internal_ones() -> None:
    world = a_world(in_a=2, in_b=3, xin_a=1, __in_a=1, out=1)
    driver = read(world, pattern())
    assert driver.ingest.pipeline.source.topics.names == ("in_a", "in_b")
    assert {each for each, _ in world.applied()} == {A, B}
    nothing = a_pipeline(pattern="in_")
    with pytest.raises(TopicMissing, match="no topic matches the pattern in_"):
        Driver(world, nothing).open()
    assert Driver(world, a_pipeline(pattern=".*a")).open().stands.offsets.keys() == {
        A,
        place(0, "xin_a"),
    }


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("where the pipeline started at the end", Start("latest"), 0),
        ("unless the configuration names it", Start("latest", {"in_b": "latest"}), 4),
    ],
)
def test_a_topic_that_comes_later_is_read_from_its_first_record(
    name: str, start: Start, expected: int
) -> None:
    world = a_world(in_a=5)
    assert Driver(world, pattern(start)).open().stands == Position({A: 5})
    world.ends[B] = 4
    there(world, ["in_a", "in_b"])
    assert Driver(world, pattern(start)).open().stands == Position({A: 5, B: expected}), name


def test_a_topic_that_comes_later_starts_at_the_first_record_that_is_kept() -> None:
    world = a_world(in_a=5)
    Driver(world, pattern()).open()
    world.ends[B], world.low[B] = 9, 3
    there(world, ["in_a", "in_b"])
    assert Driver(world, pattern()).open().stands.get(B) == 3


def test_a_topic_that_is_gone_and_was_read_is_named_and_the_rest_is_read_on() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern())
    world.ends[A] = 8
    there(world, ["in_a"])
    driver = read(world, pattern())
    assert "no longer in Kafka, read as far as the ledger knew: in_b" in driver.heard.opening.line()
    assert len(world.applied()) == 11
    driver = Driver(world, pattern()).open()  # a batch without it does not change that
    assert driver.heard.opening.vanished == ("in_b",)


def test_a_topic_that_is_gone_with_records_that_were_not_read_halts_until_accepted() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern(), limit=2)
    there(world, ["in_a"])
    with pytest.raises(PartitionGone) as halted:
        Driver(world, pattern()).open()
    assert halted.value.found == "in_b-0 had 1 offsets more"
    Driver(world, pattern()).ingest.resume("partitions")
    driver = read(world, pattern())
    assert driver.heard.opening.vanished == ()
    assert {each for each, _ in world.applied()} == {A, B}


def test_a_topic_that_comes_back_is_another_one() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern())
    read(there(world, ["in_a"]), pattern())
    there(world, ["in_a", "in_b"])
    assert Driver(world, pattern()).open().stands.get(B) == 3
    world.topics = {**world.topics, "in_b": "another"}
    with pytest.raises(TopicRecreated):
        Driver(world, pattern()).open()


def test_a_list_that_becomes_a_pattern_goes_on_in_its_ledger() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, a_pipeline("in_a", start=Start("latest")))
    assert Driver(world, pattern()).open().stands == Position({A: 5, B: 0})
    assert world.applied() == []


def test_after_a_restore_records_of_a_topic_that_is_gone_are_missed() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern(), limit=1)
    before = max(world.kept)
    read(world, pattern())
    world.restore(before)
    there(world, ["in_a"])
    Driver(world, pattern()).ingest.resume("restore")
    with pytest.raises(PartitionGone) as halted:
        Driver(world, pattern()).open()
    assert halted.value.found == "in_b-0 had 2 offsets more"


def test_a_pattern_that_is_narrowed_and_widened_again_misses_what_is_gone_by_then() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern(), limit=1)
    read(world, a_pipeline(pattern="in_a"))
    there(world, ["in_a"])
    with pytest.raises(PartitionGone):
        Driver(world, pattern()).open()


def test_a_topic_that_is_only_not_listed_is_not_taken_for_gone() -> None:
    """A broker that lags, or a login that may not see it."""
    world = a_world(in_a=5, in_b=3)
    read(world, pattern())
    world.unlisted = frozenset({"in_b"})
    with pytest.raises(KafkaUnsettled, match="lists the topics without some that it has"):
        Driver(world, pattern()).open()


def test_all_partitions_of_a_topic_go_together() -> None:
    other = place(1, "in_b")
    world = a_world(in_a=5, in_b=3)
    world.ends[other] = 1
    read(world, pattern(), limit=2)
    there(world, ["in_a"])
    Driver(world, pattern()).ingest.resume("partitions")
    assert Driver(world, pattern()).open().heard.opening.vanished == ()


def test_where_nothing_matches_any_more_what_was_not_read_can_be_accepted() -> None:
    world = a_world(in_b=3)
    read(world, pattern(), limit=2)
    there(world, [])
    with pytest.raises(PartitionGone):
        Driver(world, pattern()).open()
    Driver(world, pattern()).ingest.resume("partitions")
    with pytest.raises(TopicMissing):
        Driver(world, pattern()).open()


def test_another_cluster_that_lacks_topics_is_not_accepted() -> None:
    world = a_world(in_a=5, in_b=3)
    read(world, pattern())
    there(world, ["in_a"])
    world.cluster = "another"
    with pytest.raises(ResumeRefused, match="not in the other cluster") as refused:
        Driver(world, pattern()).ingest.resume("cluster", "same")
    assert "in_b" in refused.value.expected


def test_a_renamed_pipeline_with_a_pattern_does_not_read_all_again() -> None:
    world = a_world(in_a=5)
    read(world, pattern())
    renamed = pattern().model_copy(update={"name": "other"})
    with pytest.raises(IdentityChanged):
        Driver(world, renamed).open()
