"""What ``status`` says of a table's files and of compaction: from the log alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.operate.facts import Compacted, layout_of
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.write.files.compaction import Compaction
from rivermouth.write.keys.effect import MovedKeys
from tests.unit.write.keys.test_index import records
from tests.unit.write.keys.world import KeyedTable, a_pipeline

pytestmark = pytest.mark.unit


@pytest.fixture
def table(tmp_path: Path) -> KeyedTable:
    made = KeyedTable(tmp_path / "t", a_pipeline(order_by=("rank",)))
    made.land(records(0, 0, 1, 2, 3))
    made.land(records(10, 2, rank=1))
    return made


def test_files_and_the_deleted_part_of_rows_are_told(table: KeyedTable) -> None:
    found = layout_of(DeltaLog(table.table.log.store, files=True))
    assert found is not None
    assert (found.files, found.vectors, found.deleted) == (2, 1, 0.2)
    assert found.size == sum(each.stat().st_size for each in table.path.glob("*.parquet"))
    assert found.compacted is None
    assert "2 files" in found.line("")
    assert "1 with deleted rows, 20% of all rows" in found.line("")


def test_where_there_is_no_table_nothing_is_told(tmp_path: Path) -> None:
    assert layout_of(DeltaLog(Store.of_folder(tmp_path), files=True)) is None


def test_the_newest_job_is_told_and_that_of_others_is_none_of_ours(table: KeyedTable) -> None:
    log, index = table.table.log, table.index
    for n in range(24):
        table.land(records(20 + n, 4 + n, rank=1))
    beside = Compaction(log, table.files, partial(MovedKeys, index), index.deleted_of)
    beside.after_a_commit(table.table.also)
    assert beside._work is not None
    beside._work.join()
    beside.after_a_commit(table.table.also)
    beside.close()
    table.others(Commit("OPTIMIZE", changes=False))
    theirs = table.path / "_delta_log" / f"{log.state.version + 1:020d}.json"
    theirs.write_text(theirs.read_text("utf-8").replace('"rivermouth"', '"another"'), "utf-8")
    found = layout_of(DeltaLog(log.store, files=True))
    assert found is not None
    assert isinstance(found.compacted, Compacted)
    assert (found.compacted.removed, found.compacted.added) == (26, 1)
    assert 0 <= found.compacted.share <= 1
    assert "compacted just now, 26 files into 1" in found.line("just now")


def test_commits_that_clean_up_has_taken_do_not_matter(table: KeyedTable) -> None:
    DeltaTable(str(table.path)).create_checkpoint()
    for version in range(table.table.newest()):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    found = layout_of(DeltaLog(table.table.log.store, files=True))
    assert found is not None
    assert found.files == 2
