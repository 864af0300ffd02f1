"""A commit as data: what its version says, and how that is read."""

from __future__ import annotations

import pytest

from rivermouth.warehouse.delta.actions import AddFile, Commit, of_lines, to_lines
from rivermouth.warehouse.delta.vectors import Vector

pytestmark = pytest.mark.unit

VECTOR = Vector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
FILE = AddFile("day=1 ü%/part-0.parquet", 9, 7, '{"numRecords":3}', {"day": "1 ü%"}, VECTOR)


def test_a_commit_says_what_it_is_given_and_in_the_order_of_its_effects() -> None:
    commit = Commit(
        "MERGE", "entry", {"app": 3}, added=[FILE], removed=[FILE], metrics={"numFiles": 1}
    )
    info, txn, remove, add = commit.actions(4, 1000, "engine")
    assert info["commitInfo"] == {
        "timestamp": 1000,
        "operation": "MERGE",
        "operationParameters": {},
        "operationMetrics": {"numFiles": "1"},
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": "engine",
        "readVersion": 4,
        "userMetadata": "entry",
    }
    assert txn == {"txn": {"appId": "app", "version": 3, "lastUpdated": 1000}}
    assert (remove["remove"]["deletionTimestamp"], remove["remove"]["dataChange"]) == (1000, True)
    assert remove["remove"]["extendedFileMetadata"]
    assert add["add"]["deletionVector"] == VECTOR.as_dict()
    assert add["add"]["stats"] == FILE.statistics


def test_compaction_changes_no_data_and_a_first_commit_has_read_nothing() -> None:
    info, remove, add = Commit("OPTIMIZE", added=[FILE], removed=[FILE], changes=False).actions(
        None, 0, "engine"
    )
    assert "readVersion" not in info["commitInfo"]
    assert not remove["remove"]["dataChange"]
    assert not add["add"]["dataChange"]


def test_a_file_is_read_as_it_was_said() -> None:
    [found] = of_lines(to_lines([FILE.added(changes=True)]))
    assert found["add"]["path"] == "day=1%20%C3%BC%25/part-0.parquet"
    read = AddFile.of(found["add"])
    assert vars(read) == vars(FILE)
    assert read.key == (FILE.path, VECTOR.key)


def test_an_empty_version_says_nothing() -> None:
    assert of_lines(b"") == of_lines(b"\n") == []


@pytest.mark.parametrize("content", [b"{", b"\xff{}\n"])
def test_a_torn_version_is_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        of_lines(content)


@pytest.mark.parametrize(
    ("path", "vector", "elsewhere"),
    [
        ("part-0.parquet", None, False),
        ("a=x%3Ay/part-0.parquet", VECTOR, False),
        ("/other/part-0.parquet", None, True),
        ("file:/other/part-0.parquet", None, True),
        ("part-0.parquet", Vector("i", "inline", None, 4, 1), False),
        ("part-0.parquet", Vector("p", "file:/other/vector.bin", 1, 4, 1), True),
    ],
)
def test_files_of_a_shallow_clone_lie_elsewhere(
    path: str, vector: Vector | None, elsewhere: bool
) -> None:
    assert AddFile(path, 1, 1, None, vector=vector).elsewhere is elsewhere
