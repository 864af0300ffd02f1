"""Positions go into consumer groups beside the run: seldom, at last, and never in its way."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rivermouth.config import Pipeline, Source, Topics, load, unresolved
from rivermouth.errors import KafkaRefused, KafkaUnreachable, KafkaUnsettled
from rivermouth.kafka.groups import ConfiguredGroups
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.run.mirroring import AGAIN_S, EVERY_S, FRESH_S, Mirror, Mirroring, mirroring
from rivermouth.run.report import CommitReport, Listener, MirrorReport, OpenReport, Silent
from tests.builders import place
from tests.doubles import Heard, MemoryGroups, a_pipeline
from tests.unit.config.conftest import LAKE

pytestmark = pytest.mark.unit

PATIENCE_S = 10.0
T, U, GONE = (TopicPartition(each, 0) for each in ("t", "u", "gone"))
ONE, TWO = {T: 1}, {T: 2}


@pytest.mark.parametrize(
    ("mirror", "now_s", "due", "last"),
    [
        (Mirror(), 0.0, False, False),
        (Mirror(ONE), 0.0, True, True),
        (Mirror(TWO, ONE, 10.0), 10.0 + EVERY_S - 0.1, False, True),
        (Mirror(TWO, ONE, 10.0), 10.0 + EVERY_S, True, True),
        (Mirror(TWO, ONE, 10.0, failed=True), 10.0 + AGAIN_S - 0.1, False, True),
        (Mirror(TWO, ONE, 10.0, failed=True), 10.0 + AGAIN_S, True, True),
        (Mirror(ONE, ONE, 10.0), 10.0 + FRESH_S - 0.1, False, False),
        (Mirror(ONE, ONE, 10.0), 10.0 + FRESH_S, True, False),
    ],
)
def test_a_group_is_due(mirror: Mirror, now_s: float, due: bool, last: bool) -> None:
    assert mirror.is_due(now_s) is due
    assert mirror.is_due(now_s, closing=True) is last


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def pipeline(name: str, *topics: str, group: str | None = "burrow") -> Pipeline:
    source = Source(topics=Topics(topics), format="json", mirror_group=group)
    return a_pipeline().model_copy(update={"name": name, "source": source})


def opened(name: str, position: Mapping[TopicPartition, int]) -> OpenReport:
    return OpenReport(name, 1, Position(position), 0, 0)


def committed(name: str, position: Mapping[TopicPartition, int]) -> CommitReport:
    return CommitReport(name, 2, 2, (), (), Position(position), 0.1)


@dataclass
class Bench:
    """A mirror whose thread has not begun: a test says when it looks."""

    groups: MemoryGroups = field(default_factory=MemoryGroups)
    heard: Heard = field(default_factory=Heard)
    clock: Clock = field(default_factory=Clock)

    def of(self, *pipelines: Pipeline) -> Mirroring:
        return Mirroring(self.heard, pipelines, self.groups, now_s=self.clock)


def test_a_group_gets_the_position_of_the_opening_then_the_newest_every_few_seconds() -> None:
    bench = Bench()
    mirror = bench.of(pipeline("p", "t"))
    mirror.opened(opened("p", {T: 5}))
    mirror.write_due()
    for offset in (6, 7, 8):
        mirror.committed(committed("p", {T: offset}))
        mirror.write_due()
    assert bench.groups.written == [("burrow", {T: 5})], "an idle pipeline is written, too"
    bench.clock.now_s += EVERY_S
    mirror.write_due()
    mirror.write_due()
    assert bench.groups.written[1:] == [("burrow", {T: 8})]
    assert len(bench.heard.commits) == 3, "all is passed on"


def test_pipelines_with_one_group_are_written_together_and_others_are_not() -> None:
    bench = Bench()
    mirror = bench.of(pipeline("p", "t"), pipeline("q", "u"), pipeline("r", "t", group=None))
    mirror.opened(opened("p", {T: 5}))
    mirror.opened(opened("q", {U: 7}))
    mirror.opened(opened("r", {T: 1}))
    mirror.write_due()
    assert bench.groups.written == [("burrow", {T: 5, U: 7})]


def test_pipelines_that_read_other_partitions_of_a_topic_keep_those_of_each_other() -> None:
    bench = Bench()
    one, two = place(0), place(1)
    pipelines = [pipeline("p", "t"), pipeline("q", "t")]
    for each, number in zip(pipelines, (0, 1), strict=True):
        topics = Topics(("t",), assigned={"t": (number,)})
        source = each.source.model_copy(update={"topics": topics})
        pipelines[number] = each.model_copy(update={"source": source})
    mirror = bench.of(*pipelines)
    mirror.opened(opened("p", {one: 4}))
    mirror.opened(opened("q", {two: 7}))
    mirror.committed(committed("p", {one: 5, two: 2}))  # it read the other one once
    mirror.write_due()
    assert bench.groups.held == {"burrow": {one: 5, two: 7}}


def test_a_topic_that_was_taken_out_or_is_gone_since_the_last_opening_is_not_written() -> None:
    bench = Bench()
    mirror = bench.of(pipeline("p", "t"), pipeline("q", "u"))
    mirror.opened(opened("q", {U: 7}))
    mirror.committed(committed("p", {T: 3, GONE: 9}))  # the entry of the opening
    mirror.opened(opened("p", {T: 4, GONE: 9}))
    mirror.opened(opened("p", {T: 4}))
    mirror.committed(committed("p", {T: 5, GONE: 9}))
    mirror.write_due()
    assert bench.groups.held == {"burrow": {T: 5, U: 7}}


def test_a_refusal_is_said_once_and_tried_again_until_it_passes() -> None:
    bench = Bench()
    bench.groups.live.add("burrow")
    mirror = bench.of(pipeline("p", "t"), pipeline("q", "u"))
    mirror.opened(opened("p", {T: 5}))
    for _ in range(3):
        mirror.write_due()
        bench.clock.now_s += AGAIN_S
    [said] = bench.heard.mirrors
    assert said.pipelines == ("p", "q")
    assert said.line().startswith("p, q: the run goes on, but the group burrow is not written: ")
    bench.groups.live.clear()
    bench.groups.failing["burrow"] = KafkaUnreachable("no broker answers")
    mirror.write_due()
    assert [each.error.code for each in bench.heard.mirrors] == ["RM303", "RM301"], "another cause"
    bench.groups.failing.clear()
    bench.clock.now_s += AGAIN_S
    mirror.write_due()
    assert bench.groups.held == {"burrow": {T: 5}}


@pytest.mark.parametrize("fault", [KafkaRefused("no"), RuntimeError("nobody foresaw it")])
def test_a_group_that_fails_does_not_keep_the_others(fault: Exception) -> None:
    bench = Bench()
    bench.groups.failing["away"] = fault
    mirror = bench.of(pipeline("p", "t", group="away"), pipeline("q", "u"))
    mirror.opened(opened("p", {T: 5}))
    mirror.opened(opened("q", {U: 7}))
    mirror.write_due()
    assert bench.groups.held == {"burrow": {U: 7}}
    assert [each.group for each in bench.heard.mirrors] == ["away"]


def test_what_is_missing_is_written_when_the_run_ends() -> None:
    groups = MemoryGroups()
    with mirroring(Silent(), [pipeline("p", "t")], groups) as mirror:
        mirror.opened(opened("p", {T: 5}))
        mirror.committed(committed("p", {T: 6}))
    assert groups.held == {"burrow": {T: 6}}
    assert groups.closed


def test_nobody_is_asked_where_no_group_is_configured() -> None:
    listener: Listener = Silent()
    with mirroring(listener, [pipeline("p", "t", group=None)], MemoryGroups()) as given:
        assert given is listener


def test_a_listener_that_knows_no_mirrors_stops_nothing() -> None:
    class Earlier(Silent):
        def not_mirrored(self, report: MirrorReport) -> None:
            raise AttributeError("not_mirrored")

    groups = MemoryGroups(live={"burrow"})
    mirror = Mirroring(Earlier(), [pipeline("p", "t"), pipeline("q", "u", group="other")], groups)
    mirror.opened(opened("p", {T: 1}))
    mirror.opened(opened("q", {U: 2}))
    mirror.write_due()
    assert groups.held == {"other": {U: 2}}


def test_a_pipeline_without_a_partition_writes_nothing() -> None:
    bench = Bench()
    mirror = bench.of(pipeline("p", "t"))
    mirror.opened(opened("p", {}))
    mirror.write_due(closing=True)
    assert bench.groups.written == []


class Hanging(MemoryGroups):
    """A broker that does not answer before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self.asked = threading.Event()

    def write(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.asked.set()
        assert self.let_go.wait(
            6 * PATIENCE_S
        )  # a busy machine takes long for what comes meanwhile


def test_a_broker_that_hangs_delays_no_batch_nor_the_end_which_says_so() -> None:
    """All of it happens while the broker hangs."""
    groups, heard = Hanging(), Heard()
    mirror = Mirroring(heard, [pipeline("p", "t")], groups, tick_s=0.01, closing_s=0.5)
    with mirror:
        mirror.opened(opened("p", {T: 1}))
        assert groups.asked.wait(PATIENCE_S)
        for offset in range(1000):
            mirror.committed(committed("p", {T: offset}))
    assert len(heard.commits) == 1000
    [said] = heard.mirrors
    assert said.error.what == "the run ended before the group was written"
    groups.let_go.set()
    mirror._thread.join(PATIENCE_S)
    assert not mirror._thread.is_alive(), "the thread ends as soon as it is let go"


@pytest.mark.parametrize("mute", [True, False], ids=["takes the connection", "refuses it"])
def test_a_client_gives_up_on_a_broker_that_does_not_answer(mute: bool, tmp_path: Path) -> None:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        if mute:
            server.listen()
        file = tmp_path / "lake.yml"
        file.write_text(LAKE.replace("k:9092", f"127.0.0.1:{server.getsockname()[1]}"))
        groups = ConfiguredGroups(load(file), unresolved, timeout_s=0.5)
        began = time.monotonic()
        with closing(groups):
            with pytest.raises(KafkaUnreachable):
                groups.read("burrow", [T])
            with pytest.raises((KafkaUnreachable, KafkaUnsettled)):
                groups.write("burrow", ONE)
        assert time.monotonic() - began < PATIENCE_S
