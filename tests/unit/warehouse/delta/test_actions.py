"""A commit as data: what its version says, and how that is read."""

from __future__ import annotations

import pytest

from rivermouth.warehouse.delta.actions import AddFile, Commit, of_lines, to_lines

pytestmark = pytest.mark.unit

FILE = AddFile("day=1 ü%/part-0.parquet", 9, 7, '{"numRecords":3}')


def test_a_commit_says_what_it_is_given_and_in_the_order_of_its_effects() -> None:
    commit = Commit("WRITE", "entry", {"app": 3}, added=[FILE], metrics={"numFiles": 1})
    info, txn, add = commit.actions(4, 1000, "engine")
    assert info["commitInfo"] == {
        "timestamp": 1000,
        "operation": "WRITE",
        "operationParameters": {},
        "operationMetrics": {"numFiles": "1"},
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": "engine",
        "readVersion": 4,
        "userMetadata": "entry",
    }
    assert txn == {"txn": {"appId": "app", "version": 3, "lastUpdated": 1000}}
    assert add["add"]["stats"] == FILE.statistics
    assert add["add"]["dataChange"]


def test_a_first_commit_has_read_nothing() -> None:
    [info] = Commit("CREATE TABLE").actions(None, 0, "engine")
    assert "readVersion" not in info["commitInfo"]


def test_a_file_is_read_as_it_was_said() -> None:
    [found] = of_lines(to_lines([FILE.action()]))
    assert found["add"]["path"] == "day=1%20%C3%BC%25/part-0.parquet"
    assert AddFile.of(found["add"]) == FILE


def test_an_empty_version_says_nothing() -> None:
    assert of_lines(b"") == of_lines(b"\n") == []


@pytest.mark.parametrize("content", [b"{", b"\xff{}\n"])
def test_a_torn_version_is_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        of_lines(content)
