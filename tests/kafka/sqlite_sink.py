"""Bids into SQLite, exactly once: rows and offsets change in one transaction."""

import os
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import rivermouth


def connect() -> sqlite3.Connection:
    found = sqlite3.connect(os.environ["BIDS_DB"], timeout=60, isolation_level=None)
    found.execute("CREATE TABLE IF NOT EXISTS bids (auction, price)")
    columns = "topic, number, next DEFAULT 0, seen, UNIQUE(topic, number)"
    found.execute(f"CREATE TABLE IF NOT EXISTS offsets ({columns})")
    return found


def kafka_partition(row: dict[str, Any]) -> tuple[str, int]:
    return row["_kafka"]["topic"], row["_kafka"]["partition"]


def follow_on(database: sqlite3.Connection, batch: rivermouth.Batch) -> None:
    """Raise where batches before this one were not seen here: their rows are missing."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        for each in batch.ranges:
            new = "INSERT OR IGNORE INTO offsets (topic, number, seen) VALUES (?, ?, ?)"
            database.execute(new, (each.topic, each.partition, each.from_offset))
            place = "WHERE topic = ? AND number = ?"
            where = (each.topic, each.partition)
            (seen,) = database.execute(f"SELECT seen FROM offsets {place}", where).fetchone()
            if seen < each.from_offset:
                raise RuntimeError(f"{each}: the database knows only what is before {seen}")
            until = max(seen, each.until_offset)
            database.execute(f"UPDATE offsets SET seen = ? {place}", (until, *where))


def store(rows: Iterator[dict[str, Any]], batch: rivermouth.Batch, partition_id: int) -> None:
    database = rivermouth.pooled("bids", connect)
    follow_on(database, batch)
    for (topic, number), some in groupby(rows, kafka_partition):
        ours = batch.range_of(topic, number)
        until = ours.until_offset if ours else 0
        with database:
            database.execute("BEGIN IMMEDIATE")
            place = "FROM offsets WHERE topic = ? AND number = ?"
            (known,) = database.execute(f"SELECT next {place}", (topic, number)).fetchone()
            new = [each for each in some if each["_kafka"]["offset"] >= known]
            values = [(each["auction"], each["price"]) for each in new]
            database.executemany("INSERT INTO bids VALUES (?, ?)", values)
            swapped = database.execute(
                "UPDATE offsets SET next = ? WHERE topic = ? AND number = ? AND next = ?",
                (max(known, until), topic, number, known),
            )
            if swapped.rowcount != 1:
                raise RuntimeError(f"{topic} {number}: another driver has stored {batch}")
