"""Commits of files by the driver: exactly one version or none, and checkpoints as a table says."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from obstore.exceptions import GenericError

from rivermouth.errors import BatchFailed, CommitConflict
from rivermouth.protocol.commits import app_id
from rivermouth.storage import store
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.statistics import Leaf
from rivermouth.write.files.data_files import DataFile, Files, Folder
from rivermouth.write.files.table import FilesTable, appended
from tests.reading import rows_at

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("n", pa.int64())])
TXN = app_id("p")


def table(folder: Path, **properties: str) -> FilesTable:
    named = {f"delta.{name}": value for name, value in properties.items()}
    DeltaTable.create(str(folder), SCHEMA, configuration=dict(named))
    made = FilesTable(Store.of_folder(folder), "p")
    made.newest()
    return made


def a_file(made: FilesTable, *numbers: int) -> DataFile:
    files = Files(Folder(made.store, (Leaf(("n",), "long"),), tight=False), 0)
    rows = pa.RecordBatch.from_pydict({"n": [*numbers]}, SCHEMA)
    files.add(rows)
    [file] = files.end()
    return file


def exact(made: FilesTable, files: Sequence[DataFile], said: str, number: int) -> None:
    """Commit as the version that follows."""
    made.also(replace(appended(files), said=said, txns={TXN: number}))


def numbers(path: str) -> list[Any]:
    return sorted(each["n"] for each in rows_at(path))


def test_files_txn_and_metadata_are_one_commit(tmp_path: Path) -> None:
    made = table(tmp_path)
    file = a_file(made, 1, 2)
    exact(made, [file], "said", 7)

    [_, record] = DeltaLog.of_folder(tmp_path).commits()
    assert (record.operation, record.txns, record.user_metadata) == ("WRITE", {TXN: 7}, "said")
    assert numbers(made.store.where) == [1, 2]
    assert (made.newest(), made.txn(TXN), made.txn("other")) == (1, 7, 0)
    actions = (tmp_path / "_delta_log" / f"{1:020d}.json").read_text("utf-8").split("\n")
    [info] = [json.loads(each)["commitInfo"] for each in actions if "commitInfo" in each]
    metrics = {"numFiles": "1", "numOutputRows": "2", "numOutputBytes": str(file.size)}
    assert (info["operationMetrics"], info["isBlindAppend"]) == (metrics, True)


def test_a_version_that_somebody_has_taken_is_not_taken_again(tmp_path: Path) -> None:
    made = table(tmp_path)
    file = a_file(made, 1)
    write_deltalake(made.store.where, pa.table({"n": [9]}), mode="append")

    with pytest.raises(CommitConflict, match="in the way"):
        exact(made, [file], "said", 1)
    assert numbers(made.store.where) == [9]

    assert made.newest() == 1
    exact(made, [file], "said", 1)
    assert numbers(made.store.where) == [1, 9]


def test_a_commit_without_a_txn_goes_beside_others(tmp_path: Path) -> None:
    made = table(tmp_path)
    file = a_file(made, 1)
    write_deltalake(made.store.where, pa.table({"n": [9]}), mode="append")
    made.after_others(appended([file]))
    assert numbers(made.store.where) == [1, 9]


def test_a_log_that_cannot_be_written_is_no_conflict(tmp_path: Path) -> None:
    made = table(tmp_path)
    file = a_file(made, 1)
    shutil.rmtree(tmp_path / "_delta_log")
    (tmp_path / "_delta_log").write_text("no folder")
    with pytest.raises(BatchFailed, match="cannot be written"):
        exact(made, [file], "said", 1)
    with pytest.raises(BatchFailed, match="cannot be read"):
        FilesTable(made.store, "p").newest()


def test_a_commit_that_fails_though_its_version_is_free_is_no_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise GenericError("No space left on device")

    monkeypatch.setattr("obstore.put", fails)
    with pytest.raises(BatchFailed, match="No space left"):
        exact(made, [], "said", 1)


@pytest.mark.parametrize(("cleans_up", "first"), [("true", 4), ("false", 0)])
def test_checkpoints_and_clean_up_follow_the_table(
    tmp_path: Path, cleans_up: str, first: int
) -> None:
    made = table(
        tmp_path,
        checkpointInterval="2",
        logRetentionDuration="interval 0 days",
        enableExpiredLogCleanup=cleans_up,
    )
    for number in range(1, 6):
        made.newest()
        exact(made, [a_file(made, number)], "said", number)
        made.keep_up()

    log = tmp_path / "_delta_log"
    checkpoints = [int(each.name[:20]) for each in log.glob("*.checkpoint.parquet")]
    commits = sorted(int(each.name[:20]) for each in log.glob("*.json"))
    assert max(checkpoints) == 4
    assert commits == [*range(first, 6)]
    assert numbers(made.store.where) == [1, 2, 3, 4, 5]
    assert FilesTable(made.store, "p").newest() == 5
    assert DeltaTable(made.store.where).transaction_version(TXN) == 5


@pytest.mark.parametrize(("younger", "first"), [([], 3), ([1], 0), ([2], 0)])
def test_clean_up_leaves_no_hole_where_clocks_have_jumped(
    tmp_path: Path, younger: list[int], first: int
) -> None:
    made = table(tmp_path, checkpointInterval="3", logRetentionDuration="interval 1 days")
    log, old = tmp_path / "_delta_log", time.time() - 2 * 86_400
    for number in range(1, 7):
        made.newest()
        exact(made, [a_file(made, number)], "said", number)
        if number == 6:
            for each in log.iterdir():
                version = int(each.name[:20]) if each.name[0].isdigit() else 6
                if version < 5 and version not in younger:
                    os.utime(each, (old + version, old + version))
        made.keep_up()
    commits = sorted(int(each.name[:20]) for each in log.glob("*.json"))
    assert commits == [*range(first, 7)]


class PanicException(BaseException):
    """As that of what is written in Rust."""


@pytest.mark.parametrize("fault", [OSError("disk full"), PanicException("index out of bounds")])
def test_a_checkpoint_that_fails_harms_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    made = table(tmp_path, checkpointInterval="1")

    def fails(_: DeltaTable) -> None:
        raise fault

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fails)
    exact(made, [a_file(made, 1)], "said", 1)
    made.keep_up()
    assert numbers(made.store.where) == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="what is open is told by Linux's /proc")
def test_a_checkpoint_reaches_the_disk_before_commits_are_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path, checkpointInterval="1")
    exact(made, [a_file(made, 1)], "said", 1)
    order, sync = list[str](), os.fsync

    def noted(handle: int) -> None:
        order.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(DeltaTable, "cleanup_metadata", lambda _: order.append("clean-up"))
    made.keep_up()
    names = [f"{1:020d}.checkpoint.parquet", "_last_checkpoint", "_delta_log", "clean-up"]
    assert order == names


def test_a_checkpoint_fits_its_hint(tmp_path: Path) -> None:
    made = table(tmp_path, checkpointInterval="2")
    exact(made, [a_file(made, 1)], "said", 1)
    made.keep_up()
    of_spark = tmp_path / "_delta_log" / "._last_checkpoint.crc"
    of_spark.write_bytes(b"of a hint that Spark wrote")
    exact(made, [a_file(made, 2)], "said", 2)
    made.keep_up()
    assert not of_spark.exists()
    assert (made.newest(), made.txn(TXN)) == (2, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="what is open is told by Linux's /proc")
def test_files_reach_the_disk_before_the_commit_that_names_them_and_it_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, order = table(tmp_path), list[tuple[str, int]]()
    sync, log = os.fsync, tmp_path / "_delta_log"

    def noted(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        order.append((path.name, path.stat().st_size if path.is_file() else len(commits())))
        sync(handle)

    def commits() -> list[Path]:
        return sorted(log.glob("*.json"))

    write_deltalake(made.store.where, pa.table({"n": [9]}), mode="append")  # of others
    made.newest()
    monkeypatch.setattr(os, "fsync", noted)
    file = a_file(made, 1, 2)
    assert order == [(file.name, file.size)], "all of it"
    exact(made, [file], "said", 1)
    *of_others, entry = commits()
    assert order[1:] == [
        (tmp_path.name, 2),  # the name of the file, while there are two commits
        *((each.name, each.stat().st_size) for each in of_others),
        (entry.name, entry.stat().st_size),
        (log.name, 3),
    ]

    order.clear()
    made.newest()
    write_deltalake(made.store.where, pa.table({"n": [9]}), mode="append")  # of others
    made.after_others(appended([]))
    assert [name for name, _ in order] == [
        *(each.name for each in commits()[3:]),
        log.name,
    ]

    order.clear()
    write_deltalake(made.store.where, pa.table({"n": [9]}), mode="append")  # seen before ours
    made.newest()
    exact(made, [], "said", 2)
    assert [name for name, _ in order] == [
        *(each.name for each in commits()[-2:]),
        log.name,
    ]


def test_commits_of_others_reach_the_disk_with_ours_as_far_back_as_a_checkpoint_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path, checkpointInterval="130")
    synced: set[str] = set()
    monkeypatch.setattr(store, "sync", lambda path: synced.add(path.name))
    for _ in range(140):
        made.after_others(appended([]))
    synced.clear()
    ours = FilesTable(Store.of_folder(tmp_path), "p")
    ours.newest()
    exact(ours, [], "ours", 1)
    assert {f"{n:020}.json" for n in range(11, 142)} <= synced
    assert f"{10:020}.json" not in synced

    for _ in range(150):
        made.after_others(appended([]))
    synced.clear()
    ours.newest()
    exact(ours, [], "ours", 2)
    assert {f"{n:020}.json" for n in range(142, 293)} <= synced, "all since our last one"


def test_an_empty_folder_of_a_log_is_no_table(tmp_path: Path) -> None:
    made = FilesTable(Store.of_folder(tmp_path), "p")
    (tmp_path / "_delta_log").mkdir()
    assert not made.exists()
    DeltaTable.create(str(tmp_path), SCHEMA, mode="ignore")
    assert made.exists()


def test_a_table_that_is_gone_or_made_anew_is_not_gone_on_with(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    exact(made, [], "said", 1)
    assert made.newest() == 1
    shutil.rmtree(made.store.where)
    with pytest.raises(BatchFailed, match="the log cannot be read"):
        made.newest()

    DeltaTable.create(made.store.where, SCHEMA)
    assert made.newest() == 0
    exact(made, [], "said", 1)
    made.newest()
    shutil.rmtree(made.store.where)
    DeltaTable.create(made.store.where, SCHEMA)
    assert (made.newest(), made.txn(TXN)) == (0, 0)
