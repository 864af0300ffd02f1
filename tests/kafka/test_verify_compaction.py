"""Holes that compaction leaves are no findings; records behind them are still proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic
from rivermouth.verification import Kind
from tests.kafka.topics import CLEANS_AT_ONCE, COMPACT, wait_for_compaction
from tests.kafka.verify_world import Batch, World, value

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker of its own whose log cleaner does not wait."""
    with Broker(settings=CLEANS_AT_ONCE) as broker:
        yield broker.bootstrap_servers


def compacted(world: World) -> None:
    """The cleaner has removed offset 0."""
    wait_for_compaction(world.servers, world.config, world.topic, [0], value(0, 0))


@pytest.mark.thorough
def test_append_rows_whose_records_were_compacted_away_are_unchecked(
    servers: str, tmp_path: Path
) -> None:
    create_topic(servers, "compact-append", 1, COMPACT)
    world = World(tmp_path, servers, "compact-append")
    world.produce((0, b"%d" % (i % 2), value(i, i)) for i in range(6))
    world.produce([(0, b"0", value(9, 9))], commit=False)  # 6, marker 7
    rows = [(i, i, 0, i) for i in range(6)]
    batch = Batch([(0, 0, 8)], rows)
    batch.sequence = 1
    world.write(batch)
    assert world.verify().ok
    compacted(world)
    proof = world.verify()
    assert proof.ok, proof.problems
    assert proof.unchecked == ("4 rows: Kafka has no such record, as after compaction",)


def test_a_winner_that_was_compacted_away_is_not_held_against_the_table(
    servers: str, tmp_path: Path
) -> None:
    create_topic(servers, "compact-upsert", 1, COMPACT)
    world = World(tmp_path, servers, "compact-upsert", mode="upsert", key="string")
    world.produce([(0, b"1", value(1, 9)), (0, b"1", value(1, 5)), (0, b"2", value(2, 1))])
    rows = [(1, 9, 0, 0), (2, 1, 0, 2)]
    batch = Batch([(0, 0, 3)], rows)
    batch.sequence, batch.records = 1, {0: 3}
    world.write(batch)
    assert world.verify().ok
    compacted(world)
    proof = world.verify()
    assert proof.ok, proof.problems
    assert proof.unchecked == ("1 key: not verifiable without records that Kafka no longer holds",)
    world.replace_table(world.table, world.arrow([rows[0]]))
    assert {kind for kind, number in world.verify().counts.items() if number} >= {Kind.MISSING}
