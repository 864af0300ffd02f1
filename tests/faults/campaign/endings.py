"""What ends a world: one topic is struck so that its pipeline must halt, for good."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.faults.campaign.standby import Standby
from tests.faults.campaign.tally import Tally, Violated
from tests.faults.campaign.world import PARTITIONS, PER_ROUND, TABLES, World
from tests.faults.checker.kafka import Cluster
from tests.waiting import delete_records, partitions_of

MORE = 20
"""Records by which a partition grows past the position."""

Ends = Mapping[int, int]
"""Where the partitions of a topic end; the ledger stands there too, after a proof."""
Deed = Callable[[World, str, Ends, random.Random], None]


def end(world: World, standby: Standby, tally: Tally, name: str, table: str) -> None:
    """One topic is struck: its pipeline must stop before it writes, and the other go on."""
    dice = random.Random(f"{tally.seed} {tally.rounds} end")
    [other] = {*TABLES} - {table}
    world.writer.fill(dice.randrange(1 << 30), {**PER_ROUND, table: 0})
    deed, code = DEEDS[name]
    deed(world, table, _ends(world, table), dice)
    before = {each: world.written(each) for each in TABLES}
    what = f"{name}, of {table}"
    standby.must_halt(table, code, what)
    if world.written(table) != before[table]:
        raise Violated(f"{what}: stopped with {code}, but only after it had written")
    if world.written(other) == before[other]:
        raise Violated(f"{what}: {other} did not go on")
    tally.faults[name] += 1
    tally.halts[code] += 1
    print(f"  end {what}: {code}", flush=True)


def _ends(world: World, topic: str) -> Ends:
    places = [(topic, each) for each in range(partitions_of(world.servers, topic))]
    bounds = Cluster(world.servers).bounds(places)
    return {place[1]: until for place, (_, until) in bounds.items()}


def _recreated_shorter(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    _recreate(world, topic, {each: until // 2 for each, until in ends.items()})


def _recreated_longer(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    _recreate(world, topic, {each: until + MORE for each, until in ends.items()})


def _records_lost(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    """Records come in, and Kafka deletes some of them before anybody has read them."""
    _fill(world, topic, dict.fromkeys(ends, MORE))
    lost = dice.randrange(PARTITIONS)
    delete_records(world.servers, topic, ends[lost] + dice.randint(1, MORE), lost)


def _gone(world: World, topic: str, ends: Ends, dice: random.Random) -> None:
    world.delete_topic(topic)


def _recreate(world: World, topic: str, counts: Mapping[int, int]) -> None:
    world.delete_topic(topic)
    world.topic(topic, len(counts))
    _fill(world, topic, counts)


def _fill(world: World, topic: str, counts: Mapping[int, int]) -> None:
    places = (place for place, count in counts.items() for _ in range(count))
    world.produce(topic, ((None, b"{}", place) for place in places))


DEEDS: Mapping[str, tuple[Deed, str]] = {
    "topic recreated shorter": (_recreated_shorter, "RM404"),
    "topic recreated longer": (_recreated_longer, "RM404"),
    "records lost": (_records_lost, "RM406"),
    "topic gone": (_gone, "RM302"),
}
"""What is done, and the code that the next start must stop with."""
