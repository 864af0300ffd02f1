"""The ledgers of other pipelines: read on, they are what a reading of the whole log gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rivermouth.config import Pipeline
from rivermouth.protocol.commits import CommitRecord
from rivermouth.warehouse.ledger import Others
from tests.builders import place
from tests.doubles import Driver, World, a_pipeline
from tests.memory import MemoryLog

pytestmark = pytest.mark.unit


class OnceLog(MemoryLog):
    """A log that is read as a whole only once."""

    whole = 0

    def commits(self) -> Iterator[CommitRecord]:
        self.whole += 1
        assert self.whole == 1
        return super().commits()


def named(name: str, topic: str) -> Pipeline:
    return a_pipeline(topic).model_copy(update={"name": name})


def reads(name: str, topic: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.ends[place(0, topic)] = world.ends.get(place(0, topic), 0) + 2
        world.topics = {**world.topics, topic: topic}
        Driver(world, named(name, topic)).open().batch()

    return act


def restored(world: World) -> None:
    world.restore(1)


STEPS = (
    reads("ours", "t"),
    reads("second", "u"),
    reads("ours", "t"),
    restored,
    reads("third", "v"),
    World.truncate,
)


def test_read_on_it_is_what_the_whole_log_gives() -> None:
    world = World()
    kept = Others(OnceLog(world.log), "ours")
    seen = []
    for step in STEPS:
        step(world)
        found = kept.read()
        assert found == Others(MemoryLog(world.log), "ours").read()
        assert kept.read() == found
        seen.append({each.pipeline: each.effective for each in found})
    assert [{*each} for each in seen] == [
        set(),
        {"second"},
        {"second"},
        {"second"},
        {"second", "third"},
        {"second", "third"},
    ]
    assert seen[1]["second"] == 2
    assert seen[3]["second"] == 0, "a RESTORE to before its first entry leaves nothing of it"


def test_where_clean_up_took_what_followed_all_is_read_again() -> None:
    """A run may be longer than the log is kept."""
    world = World()
    reads("ours", "t")(world)
    kept = Others(MemoryLog(world.log), "ours")
    assert kept.read() == ()
    for _ in range(3):
        reads("second", "u")(world)
    world.log.first_version = len(world.commits) - 1
    assert [each.pipeline for each in kept.read()] == ["second"]
