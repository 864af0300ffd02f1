"""What somebody does on purpose, and the order by which an operator accepts it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from tests.faults.campaign.world import World
from tests.faults.checker.log import Log
from tests.waiting import partitions_of

NEW_RECORDS = {"events": 150, "accounts": 120}
REFUSED = "RM702"
"""What is accepted already, or is not there, is refused."""


@dataclass(frozen=True)
class Order:
    """What a driver is asked for, see ``driver``."""

    do: str
    more: Mapping[str, Any]


Deed = Callable[[World, str, random.Random], "Order | None"]


def carry_out(world: World, name: str, table: str, dice: random.Random) -> Order | None:
    """Do it, and return the order that accepts it; None where there was nothing to do it to."""
    if not any(commit.txns for commit in Log(world.table(table)).update()):
        return None
    deed, _ = DEEDS[name]
    return deed(world, table, dice)


def is_accepted(world: World, table: str, order: Order) -> bool:
    """Whether the newest entry of a pipeline is the one that such an order writes."""
    written = [each for each in Log(world.table(table)).update() if each.txns and each.metadata]
    newest: dict[str, Any] = json.loads(written[-1].metadata or "")
    if order.do == "resume":
        return "changes" in newest
    named = [each["version"] for each in newest.get("deletes", ())]
    return bool(named == order.more["versions"])


def parts(world: World, table: str, version: int) -> bool:
    """Whether to go back to a version would part what was accepted from what it is about."""
    for commit in Log(world.table(table)).update():
        if commit.version > version and commit.txns and commit.metadata:
            entry = json.loads(commit.metadata)
            deletes = [each["version"] for each in entry.get("deletes", ())]
            if "changes" in entry or any(each <= version for each in deletes):
                return True
    return False


def _delete_rows(world: World, table: str, dice: random.Random) -> Order | None:
    delta = DeltaTable(str(world.table(table)))
    column, every = ("id", 53) if table == "events" else ("k", 37)
    deleted = delta.delete(f"{column} % {every} = {dice.randrange(every)}")
    if not deleted["num_deleted_rows"]:
        return None
    return Order("accept-deletes", {"versions": [delta.version()]})


def _create_again(world: World, table: str, dice: random.Random) -> Order | None:
    """With as many partitions, and some records; what nobody had read of the old one is gone."""
    count = partitions_of(world.servers, table)
    world.delete_topic(table)
    world.topic(table, count)
    world.renewed(table)
    world.writer.fill(dice.randrange(1 << 30), {table: NEW_RECORDS[table]})
    return Order("resume", {"accept": "topic"})


DEEDS: Mapping[str, tuple[Deed, str]] = {
    "rows deleted": (_delete_rows, ""),
    "topic created again": (_create_again, "RM404"),
}
"""What is done, and the halt that the next run must make before it is accepted; empty: it must go
on."""
