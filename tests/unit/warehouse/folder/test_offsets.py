"""The offsets table, over real Delta tables: written once, whoever writes, and rebuilt equal."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.errors import CommitFailed, RivermouthError
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import RowCounts
from rivermouth.warehouse.folder.offsets import SCHEMA, OffsetsTable
from tests.builders import PIPELINE, entry_after, position, span

pytestmark = pytest.mark.unit

NAME = "silver.orders"


def entries(count: int, pipeline: str = PIPELINE) -> list[Recorded]:
    """Consecutive entries of two partitions, at version 1, 2, …"""
    newest, recorded = None, []
    for n in range(count):
        newest = entry_after(newest, span(n * 5, n * 5 + 5), span(n, n + 1, 1), pipeline=pipeline)
        recorded.append(Recorded(n + 1, 1_700_000_000_000 + n, newest))
    return recorded


def rows(path: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted(table, key=lambda row: (row["pipeline"], row["sequence"], row["partition"]))


def sequences(path: Path, pipeline: str = PIPELINE) -> list[int]:
    """The sequence of every row of partition 0: each once, if all is well."""
    return [
        row["sequence"]
        for row in rows(path)
        if (row["pipeline"], row["partition"]) == (pipeline, 0)
    ]


def versions(path: Path) -> int:
    return DeltaTable(str(path)).version()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rivermouth" / "offsets"


def test_a_table_that_is_not_there_knows_nothing_and_is_not_made_by_asking(path: Path) -> None:
    table = FolderOffsets(path)
    assert table.sequence(PIPELINE) == 0
    table.project([], NAME)
    table.rebuild([], NAME)
    assert not path.exists()


def test_a_row_says_what_the_entry_says(path: Path) -> None:
    (recorded,) = entries(1)
    counts, ends = (RowCounts(3, 1), RowCounts(1, 0)), position(9)
    counted = replace(recorded.entry, rows=counts, ends=ends)
    FolderOffsets(path).project([replace(recorded, entry=counted)], NAME)
    assert DeltaTable(str(path)).to_pyarrow_table().schema.names == SCHEMA.names
    assert rows(path)[0] == {
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
        "table_name": NAME,
        "table_version": 1,
        "commit": "orders-commit-1",
        "committed_at": datetime.fromtimestamp(1_700_000_000, timezone.utc),
        "topic_id": "topic-1",
        "cluster_id": "cluster-1",
    }


def test_projecting_twice_writes_once(path: Path) -> None:
    table, recorded = FolderOffsets(path), entries(2)
    table.project(recorded[:1], NAME)
    table.project(recorded, NAME)
    table.project(recorded, NAME)
    FolderOffsets(path).project(recorded, NAME)
    assert sequences(path) == [1, 2]
    assert len(rows(path)) == 4
    assert versions(path) == 2, "created, and two commits"
    assert table.sequence(PIPELINE) == 2


def test_a_zombie_with_a_lower_sequence_writes_nothing(path: Path) -> None:
    zombie, successor = FolderOffsets(path), FolderOffsets(path)
    zombie.project(entries(1), NAME)
    successor.project(entries(4), NAME)
    zombie.project(entries(2)[1:], NAME)
    assert sequences(path) == [1, 2, 3, 4]
    assert versions(path) == 2, "created, and two commits"


def test_pipelines_share_the_table_and_do_not_count_for_each_other(path: Path) -> None:
    table = FolderOffsets(path)
    table.project(entries(3), NAME)
    assert table.sequence("bids") == 0
    table.project(entries(1, "bids"), "bronze.bids")
    assert (table.sequence(PIPELINE), table.sequence("bids")) == (3, 1)
    assert (sequences(path), sequences(path, "bids")) == ([1, 2, 3], [1])


def test_a_halt_is_noted_once_without_a_row_and_does_not_move_the_sequence(path: Path) -> None:
    table = FolderOffsets(path)
    table.project(entries(3), NAME)
    assert table.rollback_noted(PIPELINE) == 0
    for _ in range(2):
        table.note_rollback(PIPELINE, 3)
    table.note_rollback(PIPELINE, 2)
    again = FolderOffsets(path)
    assert (again.rollback_noted(PIPELINE), again.rollback_noted("other")) == (3, 0)
    assert again.sequence(PIPELINE) == 3
    assert (sequences(path), versions(path)) == ([1, 2, 3], 2)


def test_an_entry_without_ranges_moves_the_sequence_without_a_row(path: Path) -> None:
    table = FolderOffsets(path)
    table.project(entries(1), NAME)
    table.project([Recorded(2, 0, entry_after(entries(1)[0].entry))], NAME)
    assert table.sequence(PIPELINE) == 2
    assert sequences(path) == [1]


def at_once(*jobs: Any) -> list[BaseException]:
    """Run all jobs on threads that start together; return what they raised."""
    raised: list[BaseException] = []
    gate = threading.Barrier(len(jobs))

    def run(job: Any) -> None:
        gate.wait()
        try:
            job()
        except RivermouthError as fault:
            raised.append(fault)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return raised


def test_two_handles_that_race_write_each_row_once(path: Path) -> None:
    FolderOffsets(path).project(entries(1), NAME)
    handles = [FolderOffsets(path) for _ in range(3)]
    for count in range(2, 10):
        recorded = entries(count)

        def project(table: OffsetsTable, recorded: list[Recorded] = recorded) -> None:
            table.project(recorded, NAME)

        raised = at_once(*(lambda table=each: project(table) for each in handles))
        assert raised == []
        assert sequences(path) == list(range(1, count + 1))


def test_pipelines_on_threads_of_one_run_share_a_handle(path: Path) -> None:
    shared = FolderOffsets(path)
    names = ["a", "b", "c", "d"]

    def run(pipeline: str) -> None:
        for count in range(1, 8):
            shared.project(entries(count, pipeline)[-1:], NAME)

    assert at_once(*(lambda name=name: run(name) for name in names)) == []
    for name in names:
        assert sequences(path, name) == list(range(1, 8))


def test_two_handles_that_race_to_create_it_write_each_row_once(tmp_path: Path) -> None:
    for attempt in range(8):
        path = tmp_path / str(attempt)
        raised = at_once(*(lambda path=path: FolderOffsets(path).project(entries(2), NAME),) * 3)
        assert all(isinstance(each, CommitFailed) for each in raised)
        FolderOffsets(path).project(entries(2), NAME)
        assert sequences(path) == [1, 2]


def test_rebuilt_from_nothing_it_is_equal(path: Path) -> None:
    for count in (1, 2, 3):
        FolderOffsets(path).project(entries(count), NAME)
    before = rows(path)
    shutil.rmtree(path)
    FolderOffsets(path).rebuild(entries(3), NAME)
    assert rows(path) == before
    assert FolderOffsets(path).sequence(PIPELINE) == 3


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rows deleted", "DELETE"),
        ("rows changed", "UPDATE"),
        ("nothing", ""),
    ],
)
def test_rebuilt_over_damage_it_is_equal_and_others_are_left_alone(
    path: Path, name: str, damage: str
) -> None:
    table = FolderOffsets(path)
    table.project(entries(3), NAME)
    table.project(entries(2, "bids"), "bronze.bids")
    before = rows(path)
    if damage == "DELETE":
        DeltaTable(str(path)).delete(f"pipeline = '{PIPELINE}' AND sequence = 2")
    elif damage == "UPDATE":
        DeltaTable(str(path)).update({"until_offset": "99"}, predicate="sequence = 2")
        DeltaTable(str(path)).update(
            {"until_offset": "10"}, predicate="pipeline = 'bids' AND sequence = 2 AND partition = 0"
        )
        DeltaTable(str(path)).update(
            {"until_offset": "2"}, predicate="pipeline = 'bids' AND sequence = 2 AND partition = 1"
        )
    table.rebuild(entries(3), NAME)
    assert rows(path) == before, name
    table.project(entries(4), NAME)
    assert sequences(path) == [1, 2, 3, 4]


def test_a_rebuild_keeps_older_rows_that_the_log_no_longer_has(path: Path) -> None:
    table = FolderOffsets(path)
    table.project(entries(4), NAME)
    table.rebuild(entries(4)[2:], NAME)
    assert sequences(path) == [1, 2, 3, 4]


def test_a_rebuild_beside_a_running_driver_loses_none_of_its_rows(path: Path) -> None:
    read_before = entries(3)
    driver = FolderOffsets(path)
    driver.project(entries(4), NAME)
    FolderOffsets(path).rebuild(read_before, NAME)
    driver.project(entries(5)[4:], NAME)
    assert sequences(path) == [1, 2, 3, 4, 5]


def test_a_rebuild_does_not_hide_that_the_table_knows_more_than_the_log(path: Path) -> None:
    FolderOffsets(path).project(entries(4), NAME)
    FolderOffsets(path).rebuild(entries(2), NAME)
    assert FolderOffsets(path).sequence(PIPELINE) == 4


def torn(path: Path) -> None:
    (path / "_delta_log" / f"{2:020d}.json").write_text('{"add":{"pa')


def without_beginning(path: Path) -> None:
    (path / "_delta_log" / f"{0:020d}.json").unlink()


def a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


@pytest.mark.parametrize("damage", [torn, without_beginning, a_file])
def test_a_corrupt_folder_is_named_with_a_remedy(path: Path, damage: Any) -> None:
    for count in (1, 2):
        FolderOffsets(path).project(entries(count), NAME)
    damage(path)
    for ask in (
        lambda: FolderOffsets(path).sequence(PIPELINE),
        lambda: FolderOffsets(path).project(entries(3), NAME),
        lambda: FolderOffsets(path).rebuild(entries(3), NAME),
    ):
        with pytest.raises(CommitFailed) as caught:
            ask()
        assert str(path) == caught.value.where
        assert "offsets rebuild" in caught.value.remedy
        assert "Nothing of this batch" not in str(caught.value), "the data's commit stands"


def test_a_table_that_vanishes_under_a_driver_is_an_error_and_whole_after_the_next_start(
    path: Path,
) -> None:
    driver = FolderOffsets(path)
    driver.project(entries(2), NAME)
    shutil.rmtree(path)
    with pytest.raises(CommitFailed, match="the target table is as it should be"):
        driver.project(entries(3)[2:], NAME)
    FolderOffsets(path).project(entries(3), NAME)
    assert sequences(path) == [1, 2, 3]
