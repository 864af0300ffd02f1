"""What ends a world: one topic is struck so that its pipeline must halt, for good."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

from confluent_kafka import TopicPartition

from rivermouth.testing import create_topic, produce
from tests.faults.campaign.plan import PIPELINES, TABLES, Fault
from tests.faults.campaign.producer import PARTITIONS
from tests.faults.campaign.standby import Standby, clean
from tests.faults.campaign.tally import Tally, Violated
from tests.faults.campaign.world import PER_ROUND, World
from tests.faults.checker.kafka import Cluster

MORE = 20
"""Records by which a partition grows past the position."""

Ends = Mapping[int, int]
"""Where the partitions of a topic end; the ledger stands there too, after a proof."""
Deed = Callable[[World, str, Ends, random.Random], None]


def end(world: World, standby: Standby, tally: Tally, ending: Fault) -> None:
    """One topic is struck: its pipeline must stop before it writes, and the other go on."""
    dice = random.Random(f"{tally.seed} {tally.rounds} end")
    [other] = {*TABLES} - {ending.table}
    world.produce(dice.randrange(1 << 30), **{**PER_ROUND, ending.table: 0})
    code = finish(world, ending, dice)
    before = {name: world.written(name) for name in TABLES}
    answer = standby.order("run", PIPELINES)
    told = f"{ending.name}, of {ending.table}"
    if answer["codes"].get(ending.table) != code:
        raise Violated(f"{told}: expected {code}, found {answer}")
    clean(answer, but=(ending.table,))
    if world.written(ending.table) != before[ending.table]:
        raise Violated(f"{told}: stopped with {code}, but only after it had written")
    if world.written(other) == before[other]:
        raise Violated(f"{told}: {other} did not go on")
    tally.faults[ending.name] += 1
    tally.halts[code] += 1
    print(f"  end {told}: {code}", flush=True)


def finish(world: World, ending: Fault, dice: random.Random) -> str:
    """Strike the topic of a table; returns the code that the next start must stop with."""
    topic = ending.table
    count = len(world.admin().list_topics(topic, timeout=10).topics[topic].partitions)
    bounds = Cluster(world.servers).bounds((topic, each) for each in range(count))
    deed, code = DEEDS[ending.name]
    deed(world, topic, {place[1]: end for place, (_, end) in bounds.items()}, dice)
    return code


def _recreated_shorter(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    _recreate(world, topic, {each: end // 2 for each, end in ends.items()})


def _recreated_longer(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    _recreate(world, topic, {each: end + MORE for each, end in ends.items()})


def _records_lost(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    """Records come in, and Kafka deletes some of them before anybody has read them."""
    _fill(world, topic, dict.fromkeys(ends, MORE))
    lost = dice.randrange(PARTITIONS)
    cut = TopicPartition(topic, lost, ends[lost] + dice.randint(1, MORE))
    admin = world.admin()  # kept: without it no answer comes
    [deleted] = admin.delete_records([cut]).values()
    deleted.result(30)


def _gone(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    delete_topic(world, topic)


def delete_topic(world: World, topic: str) -> None:
    """Delete a topic; returns when no broker shows it any more."""
    admin = world.admin()
    admin.delete_topics([topic])[topic].result(30)
    while topic in admin.list_topics(timeout=10).topics:
        time.sleep(0.1)


def _recreate(world: World, topic: str, counts: Mapping[int, int]) -> None:
    delete_topic(world, topic)
    create_topic(world.servers, topic, len(counts))
    _fill(world, topic, counts)


def _fill(world: World, topic: str, counts: Mapping[int, int]) -> None:
    places = (place for place, count in counts.items() for _ in range(count))
    produce(world.servers, topic, ((None, b"{}", place) for place in places))


DEEDS: Mapping[str, tuple[Deed, str]] = {
    "topic recreated shorter": (_recreated_shorter, "RM404"),
    "topic recreated longer": (_recreated_longer, "RM404"),
    "records lost": (_records_lost, "RM406"),
    "topic gone": (_gone, "RM302"),
}
