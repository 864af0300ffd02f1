"""Offsets for monitors, in groups of a real broker: right, harmless, and refused where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from rivermouth.config import load, unresolved
from rivermouth.errors import KafkaRefused, KafkaUnsettled
from rivermouth.kafka.groups import ConfiguredGroups, Groups
from rivermouth.local.broker import Broker
from rivermouth.operate.status import status
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.run.tables import status_table as render
from rivermouth.verification import verify
from tests.doubles import MemoryGroups
from tests.faults.outcomes import went_well
from tests.lake import Lake, append_pipeline, bid
from tests.pages import page, snippets
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPIC = "monitored-suite"
T = TypeVar("T")
ONE, TWO = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


@contextmanager
def member_of(servers: str, group: str, topic: str, **options: Any) -> Iterator[None]:
    """A consumer that is a member of the group while the block runs."""
    own = {"group.id": group, "enable.auto.commit": False, "log_level": 2}
    with closing(Consumer({"bootstrap.servers": servers, **own, **options})) as consumer:
        consumer.subscribe([topic])

        def joined() -> bool:
            consumer.poll(0.2)
            return bool(consumer.assignment())

        wait_for(joined)
        yield


class Settled:
    """Groups that are asked again while a broker is not settled: new, or members have just left."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def write(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._settled(lambda: self._groups.write(group, offsets))

    def read(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        asked = [*partitions]
        return self._settled(lambda: self._groups.read(group, asked))

    def close(self) -> None:
        self._groups.close()

    def _settled(self, question: Callable[[], T]) -> T:
        answers: list[T] = []

        def answered() -> bool:
            with suppress(KafkaUnsettled):
                answers.append(question())
            return bool(answers)

        wait_for(answered)
        return answers[0]


@pytest.fixture(params=["memory", "broker"])
def groups(request: pytest.FixtureRequest, lake: Lake, rivermouth_broker: Broker) -> Groups:
    """The groups of a broker, and their double; the group ``lively`` has a member."""
    if request.param == "memory":
        return MemoryGroups(live={"lively"})
    lake.topic(TOPIC, 2)
    config = lake.configure(p=append_pipeline(TOPIC))
    return Settled(ConfiguredGroups(config, unresolved, timeout_s=10.0))


def test_a_group_holds_what_was_written_last_and_refuses_while_it_has_members(
    groups: Groups, lake: Lake
) -> None:
    with closing(groups):
        assert groups.read("calm", [ONE, TWO]) == {ONE: None, TWO: None}
        groups.write("calm", {ONE: 3, TWO: 0})
        groups.write("calm", {ONE: 7})
        groups.write("calm", {ONE: 5})
        assert groups.read("calm", [ONE, TWO]) == {ONE: 5, TWO: 0}, "it may go back"
        if not isinstance(groups, Settled):
            with pytest.raises(KafkaRefused, match="has live members"):
                groups.write("lively", {ONE: 1})
            return
        for protocol in ("classic", "consumer"):
            name = f"lively-{protocol}"
            with member_of(lake.servers, name, TOPIC, **{"group.protocol": protocol}):
                with pytest.raises(KafkaRefused, match="has live members") as refused:
                    groups.write(name, {ONE: 1})
                assert refused.value.found.endswith("Broker: Unknown member")
                assert "write another mirror_group" in refused.value.remedy
            groups.write(name, {ONE: 1})
            assert groups.read(name, [ONE]) == {ONE: 1}


@pytest.mark.spark
def test_a_run_mirrors_its_position_and_goes_on_where_the_group_refuses(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("monitored", 2)
    lake.produce("monitored", [(None, bid(n), n % 2) for n in range(7)])
    lake.configure(orders=append_pipeline("monitored", mirror_group="lake-orders"))
    with closing(Settled(ConfiguredGroups(load(lake.file), unresolved))) as groups:
        groups.write("another", {TopicPartition("monitored", 0): 1})  # now it has coordinators
    assert mirror_in(lake) == {
        "group": "lake-orders",
        "behind": None,
        "reason": "the ledger tells no position",
    }

    heard = went_well(lake.run(rivermouth_spark, "orders"))

    assert heard.mirrors == []
    assert in_the_group(lake) == heard.commits[-1].position.offsets
    assert mirror_in(lake) == {"group": "lake-orders", "behind": 0, "reason": None}

    lake.produce("monitored", [(None, bid(n), 0) for n in range(5)])
    with member_of(lake.servers, "lake-orders", "monitored"):
        heard = lake.run(rivermouth_spark, "orders")
    assert [(each.error, each.applied) for each in heard.ends] == [(None, 5)]
    [said] = heard.mirrors
    assert (said.pipelines, said.group) == (("orders",), "lake-orders")
    assert mirror_in(lake) == {"group": "lake-orders", "behind": 5, "reason": None}
    assert said_in_the_page("orders: the run goes on") == said.line().replace(
        lake.servers, "localhost:9092"
    )
    assert verify(load(lake.file)).ok

    heard = lake.run(rivermouth_spark, "orders")
    assert (heard.commits, heard.mirrors) == ([], [])
    assert mirror_in(lake)["behind"] == 0, "a run that finds nothing to read puts it right"
    shown = render(status(load(lake.file)))
    assert said_in_the_page("orders: group lake-orders") in shown.splitlines()


def said_in_the_page(start: str) -> str:
    """The message in docs/reading.md that begins so, in one line."""
    messages = snippets(page("reading"), "text")
    [found] = [" ".join(each.split()) for each in messages if each.startswith(start)]
    return found


def mirror_in(lake: Lake) -> Mapping[str, Any]:
    """What ``status --json`` says of the one pipeline's group."""
    [found] = status(load(lake.file)).as_dict()["pipelines"]
    mirror: Mapping[str, Any] = found["mirror"]
    return mirror


def in_the_group(lake: Lake) -> Mapping[TopicPartition, int | None]:
    partitions = [TopicPartition("monitored", each) for each in (0, 1)]
    with closing(ConfiguredGroups(load(lake.file), unresolved)) as groups:
        return groups.read("lake-orders", partitions)
