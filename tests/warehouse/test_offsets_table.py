"""What every offsets table promises: each row is there once, whoever writes beside whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest
from deltalake import DeltaTable

from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.storage.store import Store
from rivermouth.warehouse.catalog.offsets import CatalogOffsets
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.warehouse.offsets_rows import SCHEMA, rows_of
from rivermouth.warehouse.ports import OffsetsTable
from tests.builders import (
    CLUSTER,
    PIPELINE,
    TOPICS,
    entry_after,
    position,
    recorded,
    span,
)
from tests.builders import recorded_entries as entries
from tests.memory import MemoryOffsets
from tests.reading import rows_at
from tests.threads import at_once
from tests.warehouse.conftest import CATALOG, FOLDER, MEMORY, MEMORY_CATALOG, Schema


class Tables(Protocol):
    """One offsets table, of which there may be several handles."""

    tells_txn: bool
    """Whether an entry without ranges moves the sequence; else only rows do."""
    rounds: int
    """How many rounds a race may take: those of Spark are dear."""

    def handle(self) -> OffsetsTable:
        """Another handle on it."""

    def rows(self) -> list[dict[str, Any]]:
        """All rows, as they lie there."""

    def commits(self) -> int | None:
        """How many commits made it; None: that cannot be told."""


class InMemory:
    rounds = 8

    def __init__(self, tells_txn: bool) -> None:
        self.tells_txn = tells_txn
        self._table = MemoryOffsets(tells_txn=tells_txn)

    def handle(self) -> OffsetsTable:
        return self._table

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = rows_of(self._table.projected).to_pylist()
        return rows

    def commits(self) -> None:
        return None


class OnDisk:
    """A Delta table whose files lie in ``path``."""

    def __init__(self, path: Path, handle: Callable[[], OffsetsTable], *, spark: bool) -> None:
        self.tells_txn = not spark
        self.rounds = 2 if spark else 8
        self.handle = handle
        self._path = path

    def rows(self) -> list[dict[str, Any]]:
        return rows_at(self._path)

    def commits(self) -> int:
        return DeltaTable(str(self._path)).version()


@pytest.fixture(scope="module", params=[MEMORY, MEMORY_CATALOG, FOLDER, CATALOG])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Tables]:
    """Makes offsets tables that are not there yet."""
    if request.param == "folder":
        return lambda: in_folder(tmp_path_factory.mktemp("warehouse") / "rivermouth" / "offsets")
    if request.param == "catalog":
        schema: Schema = request.getfixturevalue("schema")
        names = (f"offsets_{n}" for n in count())
        return lambda: in_catalog(schema, next(names))
    return lambda: InMemory(tells_txn=request.param == "memory")


def in_folder(path: Path) -> OnDisk:
    return OnDisk(path, lambda: LakeOffsets(Store.of_folder(path)), spark=False)


def in_catalog(schema: Schema, name: str) -> OnDisk:
    def handle() -> OffsetsTable:
        return CatalogOffsets(schema.session, schema.address(name))

    return OnDisk(schema.folder / name, handle, spark=True)


@pytest.fixture
def tables(made: Callable[[], Tables]) -> Tables:
    return made()


def sequences(tables: Tables, pipeline: str = PIPELINE) -> list[int]:
    """The sequence of every row of partition 0: each once, if all is well."""
    ours = (each for each in tables.rows() if each["pipeline"] == pipeline)
    return sorted(each["sequence"] for each in ours if each["partition"] == 0)


def check_commits(tables: Tables, number: int) -> None:
    """The table was created, and so many commits followed."""
    assert tables.commits() in (number, None)


def test_at_first_it_knows_nothing(tables: Tables) -> None:
    table = tables.handle()
    assert (table.sequence(PIPELINE), table.newest(PIPELINE)) == (0, None)
    assert table.rollback_noted(PIPELINE) == 0
    table.project([])
    assert tables.handle().sequence(PIPELINE) == 0


def test_a_row_says_what_the_entry_says(tables: Tables) -> None:
    [first] = entries(1)
    counts, config = (RowCounts(3, 1), RowCounts(1, 0)), {"table": "silver.orders"}
    entry = replace(first.entry, ends=position(9), rows=counts, config=config)
    tables.handle().project([replace(first, entry=entry)])
    [row, other] = sorted(tables.rows(), key=lambda row: int(row["partition"]))
    assert [*row] == SCHEMA.names
    stamp = row.pop("committed_at")
    assert row == {
        "pipeline": PIPELINE,
        "sequence": 1,
        "topic": "t",
        "partition": 0,
        "from_offset": 0,
        "until_offset": 5,
        "end_offset": 9,
        "records": 4,
        "applied": 3,
        "quarantined": 1,
        "skipped": 0,
        "table_name": "silver.orders",
        "table_version": 1,
        "commit": "orders-commit-1",
        "topic_id": "topic-1",
        "cluster_id": "cluster-1",
    }
    assert stamp.timestamp() * 1000 == 1_700_000_000_001
    assert (other["end_offset"], other["records"]) == (None, 1), "its end was not told"


def test_the_newest_entry_comes_back_as_far_as_its_rows_tell(tables: Tables) -> None:
    table = tables.handle()
    first = entry_after(None, span(0, 5), span(7, 7, 1))
    second = entry_after(first, span(5, 8))
    table.project([recorded(first, 1)])
    table.project([recorded(second, 4)])
    for handle in (table, tables.handle()):
        assert handle.newest("bids") is None
        assert handle.newest(PIPELINE) == Recorded(
            4,
            0,
            Entry(
                pipeline=PIPELINE,
                sequence=2,
                commit="orders-commit-2",
                cluster=CLUSTER,
                table="",
                topics=TOPICS,
                ranges=(),
                position=position(8, 7),
            ),
        )


def test_projecting_twice_writes_once(tables: Tables) -> None:
    table, known = tables.handle(), entries(2)
    table.project(known[:1])
    table.project(known)
    table.project(known)
    tables.handle().project(known)
    assert sequences(tables) == [1, 2]
    assert len(tables.rows()) == 4
    check_commits(tables, 2)
    assert table.sequence(PIPELINE) == 2


def test_several_entries_are_one_commit(tables: Tables) -> None:
    tables.handle().project(entries(4))
    assert sequences(tables) == [1, 2, 3, 4]
    check_commits(tables, 1)
    assert tables.handle().sequence(PIPELINE) == 4


def test_a_zombie_with_a_lower_sequence_writes_nothing(tables: Tables) -> None:
    zombie, successor = tables.handle(), tables.handle()
    zombie.project(entries(1))
    successor.project(entries(4))
    zombie.project(entries(2)[1:])
    assert sequences(tables) == [1, 2, 3, 4]
    check_commits(tables, 2)


def test_pipelines_share_the_table_and_do_not_count_for_each_other(tables: Tables) -> None:
    table = tables.handle()
    table.project(entries(3))
    assert table.sequence("bids") == 0
    table.project(entries(1, "bids"))
    assert (table.sequence(PIPELINE), table.sequence("bids")) == (3, 1)
    assert (sequences(tables), sequences(tables, "bids")) == ([1, 2, 3], [1])


def test_a_rollback_is_noted_once_without_a_row_and_does_not_move_the_sequence(
    tables: Tables,
) -> None:
    table = tables.handle()
    table.project(entries(3))
    assert table.rollback_noted(PIPELINE) == 0
    for _ in range(2):
        table.note_rollback(PIPELINE, 3)
    table.note_rollback(PIPELINE, 2)
    again = tables.handle()
    assert (again.rollback_noted(PIPELINE), again.rollback_noted("other")) == (3, 0)
    assert again.sequence(PIPELINE) == 3
    assert sequences(tables) == [1, 2, 3]
    check_commits(tables, 2)
    again.note_rollback(PIPELINE, 7)
    assert table.rollback_noted(PIPELINE) == 7


def test_an_entry_without_ranges_leaves_no_row(tables: Tables) -> None:
    table, [first] = tables.handle(), entries(1)
    table.project([first])
    empty = entry_after(first.entry)
    for _ in range(2):
        table.project([recorded(empty, 2)])
    assert table.sequence(PIPELINE) == (2 if tables.tells_txn else 1)
    assert sequences(tables) == [1]
    third = entry_after(empty, span(5, 6))
    table.project([recorded(empty, 2), recorded(third, 3)])
    assert table.sequence(PIPELINE) == 3
    assert sequences(tables) == [1, 3]


def test_several_pipelines_are_written_together_each_by_its_own_sequence(tables: Tables) -> None:
    table = tables.handle()
    table.project(entries(2))
    for _ in range(2):
        table.project([*entries(3), *entries(2, "bids")])
    assert (table.sequence(PIPELINE), tables.handle().sequence("bids")) == (3, 2)
    assert (sequences(tables), sequences(tables, "bids")) == ([1, 2, 3], [1, 2])
    check_commits(tables, 2 if tables.tells_txn else 3)
    assert table.version() in (tables.commits(), 0)


def test_a_compact_table_says_the_same(tables: Tables) -> None:
    table = tables.handle()
    for number in range(1, 4):
        table.project(entries(number))
    before = sorted(map(str, tables.rows()))
    newest = table.newest(PIPELINE)
    table.compact()
    assert sorted(map(str, tables.rows())) == before
    for handle in (table, tables.handle()):
        assert (handle.sequence(PIPELINE), handle.newest(PIPELINE)) == (3, newest)
    table.project(entries(5))
    assert sequences(tables) == [1, 2, 3, 4, 5]


def test_of_old_rows_stay_the_newest_of_each_partition_and_those_with_bad_records(
    tables: Tables,
) -> None:
    table, found = tables.handle(), []
    newest = entry_after(None, span(0, 1), span(0, 7, 1))
    for version in range(1, 9):
        bad = RowCounts(0, 1) if version == 3 else RowCounts(1, 0)
        rows = tuple(replace(bad) for _ in newest.ranges)
        found.append(recorded(replace(newest, rows=rows), version))
        newest = entry_after(newest, span(version, version + 1))
    table.project(found)
    before = table.newest(PIPELINE)
    table.forget(1_700_000_000_007, [PIPELINE])  # entries 7 and 8 are younger
    if isinstance(table, MemoryOffsets):
        return  # it keeps all
    kept = sorted((row["sequence"], row["partition"]) for row in tables.rows())
    assert kept == [(1, 1), (3, 0), (6, 0), (7, 0), (8, 0)]
    for handle in (table, tables.handle()):
        assert handle.newest(PIPELINE) == before
        assert handle.sequence(PIPELINE) == 8
    table.forget(1_700_000_000_007, [PIPELINE])
    assert len(tables.rows()) == 5
    table.project([recorded(newest, 9)])
    assert sequences(tables) == [3, 6, 7, 8, 9]


def test_handles_that_race_write_each_row_once(tables: Tables) -> None:
    tables.handle().project(entries(1))
    handles = [tables.handle() for _ in range(3)]
    for number in range(2, 2 + tables.rounds):
        known = entries(number)
        jobs = [lambda table=each, known=known: table.project(known) for each in handles]
        assert at_once(*jobs) == []
        assert sequences(tables) == [*range(1, number + 1)]


def test_pipelines_on_threads_of_one_run_share_a_handle(tables: Tables) -> None:
    shared = tables.handle()
    names = ["a", "b", "c", "d"]

    def run(pipeline: str) -> None:
        for number in range(1, tables.rounds):
            shared.project(entries(number, pipeline)[-1:])

    assert at_once(*(lambda name=name: run(name) for name in names)) == []
    for name in names:
        assert sequences(tables, name) == [*range(1, tables.rounds)]
