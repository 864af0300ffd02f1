"""``tests.faults.upserts``: its fold, its judgement, and a short campaign."""

from __future__ import annotations

import random
from argparse import Namespace

import pytest

from tests.faults.readers import readers
from tests.faults.spark_lake import SparkLake
from tests.faults.upserts import Change, Fold, World

A, B = "a", "b"


@pytest.mark.unit
def test_the_fold_takes_records_as_the_docs_say() -> None:
    records = {
        A: [[Change(1, 5, 50), Change(1, 4, 51), Change(1, 5, 52), Change(2, None, 53)]],
        B: [[Change(1, 5, 60), Change(1, None, None), Change(1, None, 61), Change(2, 0, 62)]],
    }
    fold = Fold(records)
    steps = [(A, 0, 2, {1: 50}), (B, 0, 1, {1: 60}), (A, 2, 4, {1: 60, 2: 53})]
    steps += [(B, 1, 2, {2: 53}), (B, 2, 4, {1: 61, 2: 62}), (A, 0, 1, {1: 50, 2: 62})]
    for topic, begin, end, prices in steps:
        fold.take({"ranges": [[topic, 0, begin, end]]})
        table = fold.table()
        assert dict(zip(*(table[each].to_pylist() for each in ("id", "price")), strict=True)) == (
            prices
        )


@pytest.mark.slow
@pytest.mark.thorough
def test_a_short_campaign_is_clean_and_sees_a_row_that_is_wrong(lake: SparkLake) -> None:
    asked = Namespace(changes=800, keys=60, batches=8)
    every = readers(lake.spark, None)
    world = World(lake, lake.spark, random.Random(4), asked, every)
    for deed in ("damage", "restore", "purge", "optimize", "nothing"):
        world.produce(200)
        assert world.run() == [], deed
        world.disturb(deed)
    assert world.proved() == []
    newest = world.log.version
    [key, *_] = world.fold.rows
    lake.spark.sql(f"UPDATE delta.`{world.table}` SET price = price + 1 WHERE id = {key}")
    world.log.update()
    world.seen[world.log.version] = world.seen[newest]
    wrong = [line for each in every for line in world.differs(each, world.log.version)]
    assert len(wrong) == 2
    assert wrong[0].startswith(f"version {world.log.version}, Spark: ")
