"""Functions that pipelines of the tests send to; workers load what this imports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from rivermouth import Batch, pooled
from tests.kafka.sqlite_sink import connect


def note(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Check what each call gets."""
    assert batch.pipeline == "p"
    assert partition_id in (0, 1)
    for each in rows:
        place = each["_kafka"]
        found = batch.range_of(place["topic"], place["partition"])
        assert found is not None
        assert found.from_offset <= place["offset"] < found.until_offset
        assert each["bidder"] == 7


def note_items(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Check what each call gets of made rows: those of a Kafka partition in their order."""
    reached: dict[int, int] = {}
    for each in rows:
        assert {*each} == {"item", "_kafka"}
        partition, offset = each["_kafka"]["partition"], each["_kafka"]["offset"]
        assert reached.get(partition, -1) < offset, "in their order"
        assert partition not in reached or partition == [*reached][-1], "one after the other"
        reached[partition] = offset


def fail(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Fail at the first row."""
    for each in rows:
        raise RuntimeError(f"no room for {each['auction']}")


def keep(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Store rows, a hundred at a time and without offsets: what comes twice is there twice."""
    database = pooled("kept", connect)
    while some := list(islice(rows, 100)):
        with database:
            database.execute("BEGIN IMMEDIATE")
            values = [(each["auction"], each["price"]) for each in some]
            database.executemany("INSERT INTO bids VALUES (?, ?)", values)


def fail_without_rows(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Fail where there is no row."""
    if not [*rows]:
        raise RuntimeError(f"no row in {', '.join(map(str, batch.ranges))}")


def log(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Write the id of this process into the file that the rows name, by one connection to it."""
    for path in {each["path"] for each in rows}:
        os.write(pooled(path, partial(_connect, path)), b"called %d\n" % os.getpid())


def _connect(path: str) -> int:
    made = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(made, b"connected %d\n" % os.getpid())
    return made
