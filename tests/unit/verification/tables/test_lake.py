"""Tables of a lake: log files, rows of one version, and what cannot be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import TableName
from rivermouth.storage.client import Client
from rivermouth.storage.lake import Lake
from rivermouth.verification.result import Findings, Kind
from rivermouth.verification.tables.lake import LakeTables
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import found

pytestmark = pytest.mark.unit

NAME = TableName("t", "p")


@pytest.fixture
def tables(tmp_path: Path) -> LakeTables:
    """A table of three commits, the second one with a ``txn`` and a text of its own."""
    stamp = datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
    rows = pa.table({"id": [1, 2], "at": pa.array([stamp] * 2, pa.timestamp("us", tz="UTC"))})
    path = NAME.path(tmp_path)
    write_deltalake(path, rows)
    entry = CommitProperties(
        app_transactions=[Transaction("rivermouth/p", 7)],
        custom_metadata={"userMetadata": "text"},
    )
    write_deltalake(path, rows, mode="append", commit_properties=entry)
    write_deltalake(path, rows, mode="append")
    return LakeTables(Lake.in_folder(tmp_path))


def test_commits_tell_their_text_and_txn(tables: LakeTables) -> None:
    commits, findings = tables.commits(NAME), Findings("p")
    assert commits.versions() == [0, 1, 2]
    first, second, _ = (commits.read(version, findings) for version in range(3))
    assert (first.txns, second.txns) == ({}, {"rivermouth/p": 7})
    assert second.info["userMetadata"] == "text"
    assert [commits.has(version) for version in (2, 3)] == [True, False]
    assert found(findings) == {}


def test_a_checkpoint_is_known(tables: LakeTables, tmp_path: Path) -> None:
    assert tables.commits(NAME).checkpointed() == -1
    DeltaTable(NAME.path(tmp_path)).create_checkpoint()
    assert tables.commits(NAME).checkpointed() == 2


@pytest.mark.parametrize(
    "content", [b'{"commitInfo": {"operation"', b'{"txn": \xff}', b"", b"\n", None]
)
def test_a_commit_that_cannot_be_read_is_a_fault(
    tables: LakeTables, tmp_path: Path, content: bytes | None
) -> None:
    file = NAME.path(tmp_path) / "_delta_log" / f"{1:020d}.json"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    findings = Findings("p")
    assert tables.commits(NAME).read(1, findings).txns == {}
    assert found(findings) == {Kind.FAULT: 1}


def test_rows_are_those_of_one_version_in_canonical_values(tables: LakeTables) -> None:
    older, newest = tables.rows(NAME, 0), tables.rows(NAME)
    assert [each.to_pylist() for each in older.batches(["at", "id"], "id = 2")] == [
        [{"at": 1_000_000, "id": 2}]
    ]
    assert sum(each.num_rows for each in newest.batches(["id"])) == 6
    assert newest.schema.names == ["id", "at"]
    assert [newest.transaction(app) for app in ("rivermouth/p", "other")] == [7, 0]


def test_what_is_no_table_or_has_lost_a_file_is_unreadable(
    tables: LakeTables, tmp_path: Path
) -> None:
    other = TableName("t", "other")
    assert (tables.exist(NAME), tables.exist(other)) == (True, False)
    assert tables.commits(other).versions() == []
    with pytest.raises(Unreadable, match=r"t\.other: "):
        tables.rows(other)
    rows = tables.rows(NAME)
    for file in NAME.path(tmp_path).glob("*.parquet"):
        file.unlink()
    with pytest.raises(Unreadable):
        list(rows.batches(["id"]))


@pytest.mark.parametrize("order", [range(40), range(39, -1, -1), [5, 9, 10, 11, 2, 3, 3, 39, 38]])
def test_a_log_in_a_bucket_says_the_same_in_each_order(order: Sequence[int]) -> None:
    """Most of it is asked for before somebody comes to it; what is gone counts only there."""
    lake, gone = Lake(Client.in_memory(), "lake", "memory"), 10
    for version in range(40):
        line = json.dumps({"commitInfo": {"number": version}}).encode()
        path = lake.path(NAME.schema, NAME.name, "_delta_log", f"{version:020d}.json")
        obstore.put(lake.client.objects, path, line)
    commits, findings = LakeTables(lake).commits(NAME), Findings("p")
    assert commits.versions() == [*range(40)]
    path = lake.path(NAME.schema, NAME.name, "_delta_log", f"{gone:020d}.json")
    obstore.delete(lake.client.objects, path)
    expected = [{} if each == gone else {"number": each} for each in order]
    assert [commits.read(each, findings).info for each in order] == expected
    assert (commits.has(39), commits.has(gone), commits.has(40)) == (True, False, False)
    assert found(findings) == {Kind.FAULT: [*order].count(gone)}
