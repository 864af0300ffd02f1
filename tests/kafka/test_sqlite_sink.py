"""The function of docs/sinks.md that stores rows and offsets in one transaction, called by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import rivermouth
from rivermouth import Batch
from tests.builders import TOPIC, span
from tests.kafka import sqlite_sink

pytestmark = pytest.mark.unit


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """An empty database, to which the function is connected."""
    monkeypatch.setenv("BIDS_DB", str(tmp_path / "bids.db"))
    with closing(sqlite_sink.connect()) as made:
        monkeypatch.setattr(rivermouth, "pooled", lambda key, make: made)
        yield made


def store(start: int, until: int, *offsets: int) -> None:
    """Store a batch of this range in which the records at ``offsets`` are good."""
    places = [{"topic": TOPIC, "partition": 0, "offset": each} for each in offsets]
    rows = [{"auction": each["offset"], "price": 1, "_kafka": each} for each in places]
    sqlite_sink.store(iter(rows), Batch("p", 2, "c", (span(start, until),)), 0)


def stored(database: sqlite3.Connection) -> list[int]:
    return [each for (each,) in database.execute("SELECT auction FROM bids")]


def test_what_comes_again_is_stored_once_also_in_a_longer_batch(
    database: sqlite3.Connection,
) -> None:
    store(3, 6, 3, 4, 5)
    store(3, 6, 3, 4, 5)
    store(3, 9, 3, 4, 5, 7, 8)
    assert stored(database) == [3, 4, 5, 7, 8]


def test_a_batch_without_a_row_is_no_gap(database: sqlite3.Connection) -> None:
    store(0, 3, 0, 1)
    store(3, 6)
    store(6, 8, 7)
    assert stored(database) == [0, 1, 7]


def test_a_database_that_is_behind_is_noticed_before_anything_is_stored(
    database: sqlite3.Connection,
) -> None:
    store(0, 3, 0, 1)
    with closing(sqlite3.connect(":memory:")) as backup:
        database.backup(backup)
        store(3, 6, 4)
        backup.backup(database)
    with pytest.raises(RuntimeError, match=r"t-0\[6,8\): the database knows only what is before 3"):
        store(6, 8, 6, 7)
    assert stored(database) == [0, 1]
    store(3, 8, 4, 6, 7)
    assert stored(database) == [0, 1, 4, 6, 7]
