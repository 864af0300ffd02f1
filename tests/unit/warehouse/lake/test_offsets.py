"""The offsets table of a folder: who creates it, what damages it, and how it is rebuilt equal.

What every offsets table promises is in ``tests/warehouse``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.errors import OffsetsUnreadable, ProjectionFailed
from rivermouth.storage.store import Store
from rivermouth.warehouse.lake import offsets as room
from rivermouth.warehouse.lake.offsets import LakeOffsets
from tests.builders import PIPELINE
from tests.builders import recorded_entries as entries
from tests.reading import rows_at
from tests.threads import at_once

pytestmark = pytest.mark.unit


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(
        rows_at(path), key=lambda row: (row["pipeline"], row["sequence"], row["partition"])
    )


def sequences(path: Path, pipeline: str = PIPELINE) -> list[int]:
    """The sequence of every row of partition 0: each once, if all is well."""
    return [
        row["sequence"]
        for row in rows(path)
        if (row["pipeline"], row["partition"]) == (pipeline, 0)
    ]


def table_at(path: Path) -> LakeOffsets:
    """A handle on it."""
    return LakeOffsets(Store.of_folder(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rivermouth" / "offsets"


def test_a_table_that_is_not_there_knows_nothing_and_is_not_made_by_asking(path: Path) -> None:
    table = table_at(path)
    assert table.sequence(PIPELINE) == 0
    table.project([])
    table.rebuild([])
    assert not path.exists()


def test_two_handles_that_race_to_create_it_write_each_row_once(tmp_path: Path) -> None:
    for attempt in range(8):
        path = tmp_path / str(attempt)
        raised = at_once(*(lambda path=path: table_at(path).project(entries(2)),) * 3)
        assert all(isinstance(each, ProjectionFailed | OffsetsUnreadable) for each in raised)
        table_at(path).project(entries(2))
        assert sequences(path) == [1, 2]


def test_rebuilt_from_nothing_it_is_equal(path: Path) -> None:
    for count in (1, 2, 3):
        table_at(path).project(entries(count))
    before = rows(path)
    shutil.rmtree(path)
    table_at(path).rebuild(entries(3))
    assert rows(path) == before
    assert table_at(path).sequence(PIPELINE) == 3


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
    table = table_at(path)
    table.project(entries(3))
    table.project(entries(2, "bids"))
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
    table.rebuild(entries(3))
    assert rows(path) == before, name
    table.project(entries(4))
    assert sequences(path) == [1, 2, 3, 4]


def test_a_rebuild_keeps_older_rows_that_the_log_no_longer_has(path: Path) -> None:
    table = table_at(path)
    table.project(entries(4))
    table.rebuild(entries(4)[2:])
    assert sequences(path) == [1, 2, 3, 4]


def test_a_rebuild_beside_a_running_driver_loses_none_of_its_rows(path: Path) -> None:
    read_before = entries(3)
    driver = table_at(path)
    driver.project(entries(4))
    table_at(path).rebuild(read_before)
    driver.project(entries(5)[4:])
    assert sequences(path) == [1, 2, 3, 4, 5]


def test_a_rebuild_does_not_hide_that_the_table_knows_more_than_the_log(path: Path) -> None:
    table_at(path).project(entries(4))
    table_at(path).rebuild(entries(2))
    assert table_at(path).sequence(PIPELINE) == 4


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
        table_at(path).project(entries(count))
    damage(path)
    for ask in (
        lambda: table_at(path).sequence(PIPELINE),
        lambda: table_at(path).project(entries(3)),
        lambda: table_at(path).rebuild(entries(3)),
    ):
        with pytest.raises(OffsetsUnreadable) as caught:
            ask()
        assert str(path) == caught.value.where
        assert "offsets rebuild" in caught.value.remedy
        assert "Nothing of this batch" not in str(caught.value), "the data's commit stands"


def test_a_table_that_vanishes_under_a_driver_is_an_error_and_whole_after_the_next_start(
    path: Path,
) -> None:
    driver = table_at(path)
    driver.project(entries(2))
    shutil.rmtree(path)
    with pytest.raises(OffsetsUnreadable, match="the target table is as it should be"):
        driver.project(entries(3)[2:])
    table_at(path).project(entries(3))
    assert sequences(path) == [1, 2, 3]


@pytest.mark.thorough
def test_the_log_does_not_grow_with_the_commits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_PROPERTIES", {"delta.logRetentionDuration": "interval 0 seconds"})
    made = entries(240)
    table, idle = table_at(path), table_at(path)
    table.project(made[:1])
    assert idle.sequence(PIPELINE) == 1
    table.compact()
    for each in made[1:]:
        table.project([each])
    assert len([*path.joinpath("_delta_log").glob("*.json")]) < 110
    idle.project(made)
    assert idle.sequence(PIPELINE) == 240
    assert sequences(path) == [*range(1, 241)]


def test_a_new_table_keeps_its_log_for_an_hour(path: Path) -> None:
    table_at(path).project(entries(1))
    kept = DeltaTable(str(path)).metadata().configuration
    assert kept == {"delta.logRetentionDuration": "interval 1 hour"}
