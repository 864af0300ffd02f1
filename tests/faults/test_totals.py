"""The judgement of ``tests.faults.totals``: it finds each way in which a table may be wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from tests.faults.totals import FIRST, GOLD, PARTITIONS, SUMS, TOPIC, World
from tests.lake import Lake

ENTRY = {
    "rivermouth": 1,
    "topics": {TOPIC: {"partitions": [0, PARTITIONS - 1], "position": [2, 1, 0]}},
}
Totals = dict[int, tuple[int, int]]
RIGHT: Totals = {1: (2, 30), 2: (1, 5)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three records were read: two of key 1, one of key 2; and one was not."""
    records: list[list[tuple[int, int] | None]] = [[(1, 10), (1, 20), (3, 9)], [(2, 5)], []]
    return World(Lake(tmp_path, "nowhere:9092"), random.Random(0), records=records)


def hold(world: World, totals: Totals, firsts: dict[int, int]) -> None:
    """The tables as they are after the commit of the entry."""
    numbers, sums = ([each[i] for each in totals.values()] for i in (0, 1))
    totals_of_key = {"auction": [*totals], "n": numbers, "spent": sums}
    first = {"auction": [*firsts], "price": [*firsts.values()]}
    for table, columns in ((GOLD, totals_of_key), (SUMS, totals_of_key), (FIRST, first)):
        properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(ENTRY)})
        write_deltalake(
            str(world.lake.path(table)),
            pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}),
            mode="overwrite",
            commit_properties=properties,
        )


def test_right_tables_are_right_and_tables_that_are_not_there_are_not_wrong(world: World) -> None:
    assert world.wrong() == []
    hold(world, RIGHT, {1: 20, 2: 5})
    assert world.wrong() == []
    assert world.wrong() == []


@pytest.mark.parametrize(
    ("totals", "firsts", "message"),
    [
        ({1: (2, 31), 2: (1, 5)}, {1: 10, 2: 5}, f"{GOLD} 1: (2, 31), not (2, 30)"),
        ({1: (3, 30), 2: (1, 5)}, {1: 10, 2: 5}, f"{GOLD} 1: (3, 30), not (2, 30)"),
        ({1: (2, 30)}, {1: 10, 2: 5}, f"{GOLD} 2: None, not (1, 5)"),
        ({**RIGHT, 3: (1, 9)}, {1: 10, 2: 5}, f"{GOLD} 3: (1, 9), not None"),
        (RIGHT, {1: 11, 2: 5}, f"{FIRST} 1: (11,), not ('one of', {{10, 20}})"),
        (RIGHT, {1: 10}, f"{FIRST} 2: None, not ('one of', {{5}})"),
        (RIGHT, {1: 10, 2: 5, 3: 9}, f"{FIRST} 3: (9,), not None"),
    ],
)
def test_a_total_or_a_first_row_that_is_wrong_is_named(
    world: World, totals: Totals, firsts: dict[int, int], message: str
) -> None:
    hold(world, totals, firsts)
    of_sums = [message.replace(GOLD, SUMS)] if GOLD in message else []
    assert world.wrong() == [message, *of_sums]


def test_a_first_row_that_changes_is_named(world: World) -> None:
    hold(world, RIGHT, {1: 10, 2: 5})
    assert world.wrong() == []
    hold(world, RIGHT, {1: 20, 2: 5})
    assert world.wrong() == [f"{FIRST} 1: (20,), and (10,) was the first"]


@pytest.mark.parametrize(("unread", "limit"), [(0, 150), (600, 150), (3000, 750)])
def test_a_batch_has_more_records_where_many_are_unread(
    world: World, unread: int, limit: int
) -> None:
    hold(world, RIGHT, {1: 10, 2: 5})
    world.records[2] = [None] * (unread - 1)  # one of the others is not read
    world.limit()
    pipelines = json.loads(world.lake.file.read_text("utf-8"))["pipelines"]
    found = [each["source"]["max_offsets_per_trigger"] for each in pipelines.values()]
    assert found == [limit] * 3
