"""Upkeep of tables by commits of ours: what goes, and what a version still needs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyroaring import BitMap64

from rivermouth.operate.by_files import ByFiles, committed, understood, unnamed
from rivermouth.operate.optimize import Files
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.vectors import vector_file
from rivermouth.write.files.bad_records import QUARANTINE, folder_of
from rivermouth.write.files.data_files import Files as Writer
from rivermouth.write.files.table import FilesTable, appended
from tests.unit.write.keys.test_index import records, restores
from tests.unit.write.keys.world import KeyedTable, a_pipeline

pytestmark = pytest.mark.unit


def now_ms(days: float = 0) -> int:
    return int((time.time() + days * 86400) * 1000)


@pytest.fixture
def table(tmp_path: Path) -> KeyedTable:
    """Two batches, of which the second replaces rows of the first, and a third one."""
    made = KeyedTable(tmp_path / "t", a_pipeline(order_by=("rank",)))
    made.land(records(0, 0, 1, 2, 3))
    made.land(records(10, 2, rank=1))
    made.land(records(20, 3, rank=2))
    return made


def objects(table: KeyedTable) -> set[str]:
    return {each.name for each in table.path.iterdir() if each.is_file()}


def named_at(table: KeyedTable, version: int) -> set[str]:
    """The files that delta-rs says a version needs, with their vectors."""
    log = DeltaLog(table.table.log.store, files=True)
    for each in range(version + 1):
        log.state.take(each, log.actions(each))
    files = log.state.current.values()
    return {e.path for e in files} | {str(e.vector.file) for e in files if e.vector}


def aged(table: KeyedTable, days: float, *but: str) -> None:
    """Let all objects be so old."""
    at = time.time() - days * 86400
    for each in objects(table) - {*but}:
        os.utime(table.path / each, (at, at))


def checkpointed(table: KeyedTable) -> None:
    """A checkpoint stands for all commits, as log clean-up leaves them."""
    DeltaTable(str(table.path)).create_checkpoint()
    newest = table.table.newest()
    for version in range(newest):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.parametrize("how", [lambda table: None, checkpointed], ids=["log", "checkpoint"])
def test_what_is_needed_is_what_versions_since_then_name(
    table: KeyedTable, how: Callable[[KeyedTable], None]
) -> None:
    newest = table.table.newest()
    everything, needed = objects(table), named_at(table, newest)
    how(table)
    aged(table, days=30)
    store = table.table.log.store
    assert unnamed(store, now_ms(-7)) == [], "they were removed a moment ago"
    found = {each.path for each in unnamed(store, now_ms(1))}
    assert found == everything - needed
    assert found, "the first vector"


def test_what_is_young_may_be_of_a_commit_to_come(table: KeyedTable) -> None:
    stray = table.path / "part-00000-stray.parquet"
    stray.write_bytes(b"PAR1")
    store = table.table.log.store
    assert unnamed(store, now_ms(-7)) == []
    aged(table, 30)
    assert [each.path for each in unnamed(store, now_ms(-7))] == [stray.name]


def test_hidden_names_stay(table: KeyedTable) -> None:
    for each in ("_note", ".part.crc", "_index/deep", "p=1/.hidden", "p=1/stray"):
        path = table.path / each
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    assert [each.path for each in unnamed(table.table.log.store, now_ms(-7))] == ["p=1/stray"]


def test_absolute_paths_of_our_own_files_are_named(table: KeyedTable) -> None:
    """As another tool may write them."""
    [stray] = [table.path / "part-00000-stray.parquet"]
    stray.write_bytes(b"PAR1")
    log = table.path / "_delta_log" / f"{table.table.newest() + 1:020d}.json"
    add = f'{{"path":"file://{stray}","size":4,"dataChange":true}}'
    log.write_text(f'{{"commitInfo":{{}}}}\n{{"add":{add}}}\n', "utf-8")
    aged(table, 30)
    assert unnamed(table.table.log.store, now_ms(-7)) == []


def upkeep(table: KeyedTable, days: float) -> ByFiles:
    return ByFiles(table.table.store, now_ms(days))


def test_a_dry_run_tells_what_would_go_and_leaves_it(table: KeyedTable) -> None:
    before, version = objects(table), table.table.newest()
    aged(table, 30)
    assert upkeep(table, 8).carry_out(dry_run=True) == Files(removed=1)
    assert (objects(table), table.table.newest()) == (before, version)


def test_files_go_with_vacuum_in_the_history_and_small_ones_become_one(table: KeyedTable) -> None:
    before, version = table.state(), table.table.newest()
    found = upkeep(table, 8).carry_out(dry_run=False)
    assert found == Files(compacted=3, removed=1)
    commits = [*DeltaLog.of_folder(table.path).commits_after(version)]
    assert [each.operation for each in commits] == ["VACUUM START", "VACUUM END", "OPTIMIZE"]
    assert all(each.txns == {} and each.user_metadata is None for each in commits)
    assert table.state() == before
    assert upkeep(table, 0).carry_out(dry_run=False) == Files(), "once is enough"
    table.land(records(50, *range(7), rank=7))
    assert table.state() == {(key,): (0, 50 + key) for key in range(7)}


def test_versions_within_the_retention_can_be_read_and_restored(table: KeyedTable) -> None:
    first = table.rows(1)
    upkeep(table, 6).carry_out(dry_run=False)
    upkeep(table, 6).carry_out(dry_run=False)
    assert table.rows(1) == first
    restores(table)
    assert table.rows() == first


def test_the_table_s_own_retention_holds(table: KeyedTable) -> None:
    metadata = dict(table.table.log.state.metadata)
    short = {**metadata["configuration"], "delta.deletedFileRetentionDuration": "interval 2 days"}
    said = {"metaData": {**metadata, "configuration": short}}
    table.others(Commit("SET TBLPROPERTIES", definition=[said]))
    assert upkeep(table, 1.9).carry_out(dry_run=True).removed == 0
    assert upkeep(table, 2.1).carry_out(dry_run=True).removed == 1


def test_only_a_table_that_asks_for_nothing_else_is_understood(table: KeyedTable) -> None:
    assert understood(table.table.store)
    assert not understood(Store.of_folder(table.path / "none"))
    features = ["deletionVectors", "rowTracking"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features[:1]}
    said = {"protocol": {**protocol, "writerFeatures": features}}
    table.others(Commit("UPGRADE PROTOCOL", definition=[said]))
    assert not understood(table.table.store)


Row = tuple[str, int, str, float]
"""Pipeline, sequence, commit, and how many days old."""


def quarantine(path: Path, *files: list[Row]) -> ByFiles:
    """A quarantine of these files."""
    DeltaTable.create(str(path), QUARANTINE)
    table = FilesTable(Store.of_folder(path), "p")
    for rows in files:
        table.newest()
        writer = Writer(folder_of(table.store, table.definition()), 0)
        batch = pa.RecordBatch.from_pylist([as_row(*each) for each in rows], QUARANTINE)
        table.after_others(appended([*writer.add(batch), *writer.end()]))
    return ByFiles(table.store, now_ms())


def as_row(pipeline: str, sequence: int, commit: str, days: float) -> dict[str, Any]:
    at = datetime.now(timezone.utc) - timedelta(days=days)
    return {"pipeline": pipeline, "sequence": sequence, "commit": commit, "quarantined_at": at}


def left(upkeep: ByFiles) -> list[str]:
    return sorted(DeltaTable(upkeep.store.where).to_pyarrow_table()["commit"].to_pylist())


STANDS = {1: "a", 2: "b"}
A_DAY_AGO = datetime.now(timezone.utc) - timedelta(days=1)


def known(sequences: Collection[int]) -> Mapping[int, str]:
    return {each: STANDS[each] for each in sequences if each in STANDS}


@pytest.mark.parametrize("dry_run", [False, True])
def test_orphans_go_and_all_other_rows_stay(tmp_path: Path, dry_run: bool) -> None:
    made = quarantine(
        tmp_path / "q",
        [("p", 1, "a", 2), ("p", 1, "dead", 2), ("p", 2, "young", 0.5)],
        [("p", 2, "gone", 2)],
        [("p", 2, "b", 2), ("other", 1, "theirs", 2), ("p", 3, "unborn", 2)],
    )
    everything = sorted(["a", "b", "dead", "gone", "theirs", "unborn", "young"])
    assert made.remove_orphans("p", A_DAY_AGO, known, dry_run=dry_run) == 2
    orphans = set() if dry_run else {"dead", "gone"}
    assert left(made) == [each for each in everything if each not in orphans]
    assert made.remove_orphans("p", A_DAY_AGO, known, dry_run=dry_run) == (2 if dry_run else 0)


def by_deltalake(store: Store) -> None:
    DeltaTable(store.where).delete("commit = 'dead'")


def by_a_vector(store: Store) -> None:
    table = FilesTable(store, "p", files=True)
    table.newest()
    [file] = table.log.state.current.values()
    content, [vector] = vector_file(uuid4(), [BitMap64([1])])
    store.create(str(vector.file), content)
    assert table.log.commit(Commit("DELETE", added=[file.marked(vector)], removed=[file]))


@pytest.mark.parametrize("how", [by_deltalake, by_a_vector])
def test_rows_that_are_deleted_already_are_no_orphans(
    tmp_path: Path, how: Callable[[Store], None]
) -> None:
    made = quarantine(tmp_path / "q", [("p", 1, "a", 2), ("p", 1, "dead", 2)])
    how(made.store)
    assert made.remove_orphans("p", A_DAY_AGO, known, dry_run=False) == 0


def test_what_the_offsets_table_knows_of_entries_is_asked_by_pipeline(tmp_path: Path) -> None:
    made = quarantine(tmp_path / "o", [("p", 1, "a", 0), ("p", 2, "b", 0), ("q", 2, "c", 0)])
    assert committed(made.store, "p", {2, 3}) == {2: "b"}
