"""The index follows what others do to the table, and never leads to a row that is not live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyroaring import BitMap64

from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.vectors import vector_file
from rivermouth.write.keys import index, runs
from rivermouth.write.keys.runs import Runs, Shelf
from tests.unit.write.keys.world import KAFKA, KeyedTable, Record, a_pipeline

pytestmark = pytest.mark.unit


def record(key: int, offset: int, rank: int = 0, partition: int = 0) -> Record:
    return Record(partition, offset, {"id": key}, {"id": key, "name": "n", "rank": rank})


def records(offset: int, *keys: int, rank: int = 0) -> list[Record]:
    return [record(key, offset + at, rank) for at, key in enumerate(keys)]


@pytest.fixture
def table(tmp_path: Path) -> KeyedTable:
    """Two files: the keys 0 to 3, and 2 to 5."""
    made = KeyedTable(tmp_path / "t", a_pipeline(order_by=("rank",)))
    made.land(records(0, 0, 1, 2, 3))
    made.land(records(10, 2, 3, 4, 5, rank=1))
    return made


def files(table: KeyedTable) -> list[AddFile]:
    table.table.newest()
    return [*table.table.log.state.current.values()]


def written(table: KeyedTable, *rows: tuple[int, int]) -> AddFile:
    """A file of somebody else's, of keys and offsets."""
    path = table.path / f"{uuid4()}.parquet"
    kafka = {"topic": "t", "partition": 0, "timestamp": None}
    columns = {
        "id": [key for key, _ in rows],
        "name": ["n"] * len(rows),
        "rank": pa.array([5] * len(rows), pa.int32()),
        "text": pa.nulls(len(rows), pa.string()),
        "_kafka": pa.array([{**kafka, "offset": offset} for _, offset in rows], KAFKA),
    }
    pq.write_table(pa.table(columns), path)
    return AddFile(path.name, path.stat().st_size, 0, f'{{"numRecords":{len(rows)}}}')


def adds(table: KeyedTable) -> None:
    table.others(Commit("WRITE", added=[written(table, (9, 77))]))


def compacts(table: KeyedTable) -> None:
    rows = [(key, offset) for (key,), (_, offset) in table.state().items()]
    new = written(table, *rows)
    table.others(Commit("OPTIMIZE", added=[new], removed=files(table), changes=False))


def deletes(table: KeyedTable) -> None:
    """Mark a row of the newest file as deleted."""
    [newest] = [each for each in files(table) if each.vector is None]
    content, [vector] = vector_file(uuid4(), [BitMap64([0])])
    table.table.log.store.create(str(vector.file), content)
    marked = replace(newest, vector=vector)
    table.others(Commit("DELETE", added=[marked], removed=[newest]))


def removes(table: KeyedTable) -> None:
    table.others(Commit("DELETE", removed=files(table)))


def restores(table: KeyedTable) -> None:
    """Back to the first batch, whose rows were all live."""
    now, before = files(table), []
    for each in table.table.log.actions(1):
        before += [AddFile.of(each["add"])] if "add" in each else []
    table.others(Commit("RESTORE", added=before, removed=now))


OTHERS: dict[str, Callable[[KeyedTable], None]] = {
    "adds rows": adds,
    "compacts": compacts,
    "deletes a row": deletes,
    "removes all files": removes,
    "restores": restores,
}


@pytest.mark.parametrize("restarts", [False, True], ids=["the same driver", "another driver"])
@pytest.mark.parametrize("what", OTHERS)
def test_after_a_commit_of_others_each_key_has_one_row(
    table: KeyedTable, what: str, restarts: bool
) -> None:
    OTHERS[what](table)
    before = table.state()
    if restarts:
        table.restart()
    table.land(records(100, *range(10), rank=9))
    assert table.state() == {(key,): (0, 100 + key) for key in range(10)}
    assert before.keys() <= table.state().keys()


@pytest.mark.parametrize("what", OTHERS)
def test_after_a_commit_of_others_a_row_is_compared_with_the_one_that_stands(
    table: KeyedTable, what: str
) -> None:
    OTHERS[what](table)
    before = table.state()
    table.land(records(100, *range(10), rank=-1))  # older than each row that is there
    late = {(key,): (0, 100 + key) for key in range(10)}
    assert table.state() == {**late, **before}


def test_rows_that_delta_rs_wrote_anew_are_compared_with_those_of_batches(
    table: KeyedTable,
) -> None:
    """It notes in its files that they hold views of texts."""
    DeltaTable(str(table.path)).delete("id = 5")
    table.land(records(20, 2, rank=1))
    table.land(records(5, 3, rank=1))
    assert {key: at for (key,), (_, at) in table.state().items()} == {
        0: 0,
        1: 1,
        2: 20,
        3: 11,
        4: 12,
    }


def test_a_file_whose_rows_are_all_replaced_leaves_the_table(table: KeyedTable) -> None:
    before = {each.path for each in files(table)}
    change = table.land(records(20, *range(6), rank=2))
    assert {each.path for each in change.commit.removed} == before
    assert [each.vector for each in files(table)] == [None]


def test_a_batch_of_older_rows_alone_adds_no_file(table: KeyedTable) -> None:
    change = table.land(records(20, *range(6), rank=-2))
    assert (change.commit.added, change.commit.removed) == ([], [])
    assert change.commit.metrics["numTargetRowsUpdated"] == 0


def test_a_commit_tells_what_it_did(table: KeyedTable) -> None:
    change = table.land(records(20, 0, 7, rank=2))
    metrics = change.commit.metrics
    told = (metrics["numTargetRowsInserted"], metrics["numTargetRowsUpdated"])
    assert (*told, metrics["numTargetRowsDeleted"]) == (1, 1, 0)
    marked = [each for each in change.commit.added if each.vector is not None]
    assert all('"tightBounds":false' in str(each.statistics) for each in marked)
    assert marked


def test_rows_without_a_key_are_never_found(table: KeyedTable) -> None:
    keyless = written(table, (1, 50))
    path = table.path / keyless.path
    rows = pq.read_table(path)
    pq.write_table(rows.set_column(0, "id", pa.nulls(1, pa.int64())), path)
    table.others(Commit("WRITE", added=[replace(keyless, size=path.stat().st_size)]))
    table.land(records(100, 0, rank=9))
    keys = sorted((each["id"] is None, each["id"]) for each in table.rows())
    assert keys == [*((False, key) for key in range(6)), (True, None)]


@pytest.mark.parametrize("lacks", [("rank",), ("_kafka",), ("rank", "_kafka"), ("id",)])
def test_a_file_from_before_a_column_was_added_has_nulls_there(
    table: KeyedTable, lacks: tuple[str, ...]
) -> None:
    old = written(table, (7, 0), (8, 0))
    path = table.path / old.path
    pq.write_table(pq.read_table(path).drop_columns(lacks), path)
    table.others(Commit("WRITE", added=[replace(old, size=path.stat().st_size)]))
    table.land(records(100, 7, rank=5))
    found = [each["_kafka"]["offset"] for each in table.rows() if each["id"] == 7]
    assert found == [100]


def test_a_file_that_an_error_has_kept_from_the_index_is_read_with_the_next_batch(
    table: KeyedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands, and its driver goes on."""

    def full(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "add", full)
        with pytest.raises(MemoryError):
            table.land(records(20, 0, 9, rank=2))
    table.land(records(30, 0, 9, rank=3))
    state = table.state()
    assert (state[(0,)], state[(9,)]) == ((0, 30), (0, 31))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KeyedTable:
    """Eight keys in two files that are on the disk, and one in a file that is not."""
    monkeypatch.setattr(index, "LARGE", 4)
    made = KeyedTable(tmp_path / "t", a_pipeline())
    made.land(records(0, *range(4)))
    made.land(records(10, *range(4, 8)))
    made.land(records(20, 3))
    return made


def restarted(table: KeyedTable) -> int:
    """How many data files the index reads after a restart; its rows are the right ones then."""
    before = table.state()
    table.restart()
    table.table.newest()
    table.index.follow()
    read = len(table.read)
    table.land(records(50, *range(12)))
    found = {key[-1]: place for key, place in table.state().items()}
    assert found == {key: (0, 50 + key) for key in range(12)}
    assert {key[-1] for key in before} <= found.keys()
    return read


def test_a_restart_reads_the_files_that_are_new_alone(kept: KeyedTable) -> None:
    assert restarted(kept) == 1


def test_files_of_others_since_then_are_read_by_a_restart(kept: KeyedTable) -> None:
    adds(kept)
    assert restarted(kept) == 2


def test_after_a_restore_a_restart_reads_what_is_live_again(kept: KeyedTable) -> None:
    kept.land(records(30, *range(4)))
    restores(kept)
    assert kept.state() == {(key,): (0, key) for key in range(4)}
    assert restarted(kept) == 1


def the_runs(kept: KeyedTable) -> list[Path]:
    return [*(kept.path.parent / "index").glob("*.run")]


def cuts(kept: KeyedTable) -> None:
    for each in the_runs(kept):
        each.write_bytes(each.read_bytes()[:-8])


def turns_a_bit(kept: KeyedTable) -> None:
    for each in the_runs(kept):
        content = bytearray(each.read_bytes())
        content[9] ^= 1
        each.write_bytes(content)


def loses_a_run(kept: KeyedTable) -> None:
    the_runs(kept)[0].unlink()


def is_of_another_table(kept: KeyedTable) -> None:
    manifest = kept.path.parent / "index" / "index.json"
    manifest.write_text(manifest.read_text().replace("id", "ID", 1))


def is_no_manifest(kept: KeyedTable) -> None:
    (kept.path.parent / "index" / "index.json").write_text("[]")


@pytest.mark.parametrize(
    "damage", [cuts, turns_a_bit, loses_a_run, is_of_another_table, is_no_manifest]
)
def test_an_index_that_is_damaged_or_foreign_is_made_anew(
    kept: KeyedTable, damage: Callable[[KeyedTable], None]
) -> None:
    damage(kept)
    assert restarted(kept) == 3


def test_of_other_columns_it_is_made_anew(kept: KeyedTable) -> None:
    kept.pipeline = a_pipeline("name", "id")
    assert restarted(kept) == 3


def test_a_disk_that_is_full_harms_no_batch(
    kept: KeyedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Shelf, "put", full)
    kept.land(records(40, *range(20)))
    assert kept.state() == {(key,): (0, 40 + key) for key in range(20)}


def test_runs_that_no_longer_count_are_removed(kept: KeyedTable) -> None:
    for number in range(5):
        kept.land(records(100 * number + 100, *range(20)))
    assert len(the_runs(kept)) <= 2


def test_what_was_merged_at_the_end_is_found_by_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LARGE", 4)
    monkeypatch.setattr(runs, "AT_ONCE", 4)  # so that all are merged beside
    table = KeyedTable(tmp_path / "t", a_pipeline())
    table.land(records(0, *range(6)))
    table.land(records(10, *range(6, 12)))
    table.index.close()
    assert restarted(table) == 0
