"""Compaction beside batches: no row is lost, doubled or brought back, and files stay few."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

from rivermouth.errors import CommitConflict
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.vectors import Vector
from rivermouth.write.files import compaction
from rivermouth.write.files import due as tiers
from rivermouth.write.files.bad_records import folder_of
from rivermouth.write.files.compaction import Compaction, Nobody, commit_of, rewritten
from rivermouth.write.files.data_files import Files
from rivermouth.write.files.due import due
from rivermouth.write.files.table import FilesTable
from rivermouth.write.keys.effect import MovedKeys
from tests.unit.write.keys.test_index import (
    adds,
    deletes,
    files,
    record,
    records,
    removes,
    restores,
)
from tests.unit.write.keys.world import KeyedTable, Record, a_pipeline

pytestmark = pytest.mark.unit

MB = 1 << 20


def extent(size: int, deleted: int = 0) -> AddFile:
    """A file of 100 rows."""
    vector = Vector("u", "x", 1, 1, deleted) if deleted else None
    return AddFile(f"{size}-{deleted}", size, 0, '{"numRecords":100}', vector=vector)


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [
        ("nothing", [], []),
        ("few small files", [extent(1000 + n) for n in range(7)], []),
        ("eight small files", [extent(1000 + n) for n in range(8)], [*range(8)]),
        ("files of several tiers", [extent(4**n * MB) for n in range(3)] * 3, []),
        ("large files", [extent(200 * MB + n) for n in range(20)], []),
        (
            "the fullest tier",
            [extent(MB)] * 8 + [extent(1000 + n) for n in range(9)],
            [*range(8, 17)],
        ),
        ("a file of deleted rows", [extent(200 * MB), extent(200 * MB, deleted=10)], [1]),
        ("too few of them", [extent(200 * MB, deleted=9)], []),
        ("large ones of a tier", [extent(100 * MB)] * 8, [0, 1]),
        (
            "what is farther beyond its bound",
            [extent(1000)] * 9 + [extent(MB, deleted=12)],
            [9],
        ),
        ("first the one with the most", [extent(200 * MB, deleted=n) for n in (30, 60)], [1, 0]),
        (
            "no more than make one file",
            [extent(60 * MB + n, deleted=50) for n in range(7)],
            [*range(5)],
        ),
    ],
)
def test_what_a_job_writes_anew(name: str, there: list[AddFile], expected: list[int]) -> None:
    assert due(there) == [there[each] for each in expected], name


def test_files_as_large_as_the_table_asks_for_are_not_joined() -> None:
    there = [extent(20 * MB + n) for n in range(8)]
    assert len(due(there)) == 7
    assert due(there, 16 * MB) == []
    assert len(due(there, 1024 * MB)) == 8


@pytest.fixture
def table(tmp_path: Path) -> KeyedTable:
    made = KeyedTable(tmp_path / "t", a_pipeline(order_by=("rank",)))
    made.land(records(0, 0, 1, 2, 3))
    made.land(records(10, 2, 3, 4, 5, rank=1))
    return made


def job(table: KeyedTable) -> compaction.Rewritten:
    table.table.newest()
    table.index.follow()
    sources = {each: table.index.deleted(each.path) for each in files(table)}
    log, witness = table.table.log, MovedKeys(table.index, {})
    found = rewritten(sources, log, table.files(), witness, lambda: False)
    assert found is not None
    return found


def committed(table: KeyedTable, done: compaction.Rewritten) -> bool:
    table.table.newest()
    table.index.follow()
    found = commit_of(done, table.table.log, table.index.deleted_of)
    if found is None:
        return False
    assert table.table.log.commit(found.commit)
    done.witness.stands(found.dead, found.vectors)
    return True


def test_rows_are_the_same_in_fewer_files_and_are_found_there(table: KeyedTable) -> None:
    before = table.rows()
    assert committed(table, job(table))
    [only] = files(table)
    assert (only.rows, only.vector) == (6, None)
    by_key = sorted(before, key=lambda row: row["id"])
    assert sorted(table.rows(), key=lambda row: row["id"]) == by_key
    table.land(records(50, *range(7), rank=7))
    assert table.state() == {(key,): (0, 50 + key) for key in range(7)}


def test_files_of_delta_rs_are_joined_with_ours(table: KeyedTable) -> None:
    """It notes in its files that they hold views of texts."""
    DeltaTable(str(table.path)).delete("id = 5")
    table.land(records(20, 2, rank=2))
    before = table.rows()
    assert committed(table, job(table))
    assert len(files(table)) == 1
    assert sorted(table.rows(), key=str) == sorted(before, key=str)


def test_what_batches_delete_meanwhile_stays_deleted(table: KeyedTable) -> None:
    done = job(table)
    table.land(records(20, 1, 4, 9, rank=2))
    expected = table.state()
    assert committed(table, done)
    assert table.state() == expected
    assert len(files(table)) == 2
    table.land(records(60, *range(10), rank=7))
    assert table.state() == {(key,): (0, 60 + key) for key in range(10)}


def test_a_file_that_leaves_the_table_meanwhile_does_not_keep_others_from_being_joined(
    table: KeyedTable,
) -> None:
    table.land(records(20, 6, 7))
    done = job(table)
    table.land(records(30, 0, 1, rank=2))
    assert len(files(table)) == 3, "of the first one no row is left"
    expected = table.state()
    assert committed(table, done)
    assert table.state() == expected
    assert len(files(table)) == 2
    table.land(records(60, *range(10), rank=7))
    assert table.state() == {(key,): (0, 60 + key) for key in range(10)}


def test_a_file_of_which_nothing_is_left_meanwhile_is_not_added(table: KeyedTable) -> None:
    done = job(table)
    table.land(records(20, *range(6), rank=2))
    assert not committed(table, done), "its files have left the table"


@pytest.mark.parametrize("others", [removes, restores])
def test_a_job_whose_files_others_have_changed_is_given_up(
    table: KeyedTable, others: Callable[[KeyedTable], None]
) -> None:
    done = job(table)
    others(table)
    expected = table.state()
    assert not committed(table, done)
    assert table.state() == expected


@pytest.mark.parametrize("others", [adds, deletes])
def test_what_others_add_or_delete_meanwhile_is_kept(
    table: KeyedTable, others: Callable[[KeyedTable], None]
) -> None:
    done = job(table)
    others(table)
    expected = table.state()
    assert committed(table, done)
    assert table.state() == expected


def test_a_job_brings_no_vector_to_a_table_that_marks_no_rows(tmp_path: Path) -> None:
    """Others write files anew there to delete a row: its copy in the job's file has to go, too."""
    path, store = str(tmp_path / "t"), Store.of_folder(tmp_path / "t")
    for first in (0, 2, 4):
        write_deltalake(path, pa.table({"id": [first, first + 1]}), mode="append")
    table = FilesTable(store, "t", files=True)
    table.newest()
    sources = {each: BitMap64() for each in table.log.state.current.values()}
    into = Files(folder_of(store, table.definition()), 0, {})
    done = rewritten(sources, table.log, into, Nobody(), lambda: False)
    assert done is not None
    DeltaTable(path).update({"id": "9"}, predicate="id = 0")
    table.newest()
    assert commit_of(done, table.log) is None


def test_a_job_that_is_stopped_leaves_no_file(table: KeyedTable) -> None:
    before = {*table.path.iterdir()}
    sources = {each: BitMap64() for each in files(table)}
    witness = MovedKeys(table.index, {})
    assert rewritten(sources, table.table.log, table.files(), witness, lambda: True) is None
    assert {*table.path.iterdir()} == before


def beside(table: KeyedTable) -> Compaction:
    """A compaction with eight files to join."""
    for n in range(8):
        table.land(records(20 + n, n, rank=1))
    return Compaction(
        table.table.log, table.files, partial(MovedKeys, table.index), table.index.deleted_of
    )


def test_a_job_that_ends_soon_is_committed_at_the_end_of_a_run(table: KeyedTable) -> None:
    jobs = beside(table)
    expected = table.state()
    jobs.after_a_commit(table.table.also)
    jobs.close()
    assert len(files(table)) == 1
    assert table.state() == expected
    table.land(records(60, *range(10), rank=7))
    assert table.state() == {(key,): (0, 60 + key) for key in range(10)}


def test_a_job_at_the_end_is_given_up_where_others_have_committed(table: KeyedTable) -> None:
    jobs = beside(table)
    jobs.after_a_commit(table.table.also)
    adds(table)
    table.table.newest()
    before = {each.name for each in table.path.glob("*.parquet")}
    expected = table.state()
    jobs.close()
    named = {each.path for each in files(table)}
    assert {each.name for each in table.path.glob("*.parquet")} <= before | named
    assert table.state() == expected
    table.land(records(60, *range(10), rank=7))
    assert table.state() == {(key,): (0, 60 + key) for key in range(10)}


def test_files_of_a_job_that_others_were_faster_than_come_with_the_next_commit(
    table: KeyedTable,
) -> None:
    jobs = beside(table)
    expected = table.state()

    def refused(commit: Commit) -> None:
        raise CommitConflict("others were faster")

    jobs.after_a_commit(refused)
    assert jobs._work is not None
    jobs._work.join()
    jobs.after_a_commit(refused)
    assert len(files(table)) == 8
    jobs.after_a_commit(table.table.also)
    jobs.close()
    assert len(files(table)) == 1
    assert table.state() == expected


def test_a_table_without_keys_is_compacted_likewise(table: KeyedTable) -> None:
    beside(table)
    expected = table.state()
    jobs = Compaction(table.table.log, table.files)
    jobs.after_a_commit(table.table.also)
    jobs.close()
    assert [each.vector for each in files(table)] == [None]
    assert table.state() == expected


@pytest.mark.short(("seed",), {(n,) for n in range(3)})
@pytest.mark.parametrize("seed", range(8))
def test_batches_with_compaction_all_the_time(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "TOGETHER", 2)
    monkeypatch.setattr(compaction, "SHARE", 1.0)
    monkeypatch.setattr(compaction, "_ROWS", 3)
    dice = random.Random(seed)
    by = dice.choice([(), ("rank",)])
    table = KeyedTable(tmp_path / "t", a_pipeline(tombstones=True, partition_by=by))
    log, index = table.table.log, table.index
    beside = Compaction(log, table.files, partial(MovedKeys, index), index.deleted_of)
    expected = dict[tuple[int], tuple[int, int]]()
    operations = list[str]()

    def commit(made: Commit) -> bool:
        operations.append(made.operation)
        return table.table.log.commit(made)

    for batch in range(40):
        made: list[Record] = []
        for at in range(dice.randrange(1, 12)):
            key, offset = dice.randrange(20), 100 * batch + at
            dead = dice.random() < 0.2
            row = record(key, offset, dice.randrange(2))
            made.append(Record(0, offset, {"id": key}, None) if dead else row)
            expected.pop((key,), None)
            if not dead:
                expected[(key,)] = (0, offset)
        table.land(made)
        beside.after_a_commit(commit)
        if beside._work is not None and dice.random() < 0.5:
            beside._work.join()
        assert table.state() == expected, batch
    beside.close()
    assert len(operations) > 3
    assert len(files(table)) < 15
