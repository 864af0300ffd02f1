"""The condition by which rows from before an entry are left unread, on a real table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rivermouth.config import TableName
from rivermouth.storage.lake import Lake
from rivermouth.verification.ledger.entry import LedgerEntry, Partition
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs.rows_by_offset import beginning
from rivermouth.verification.tables.lake import LakeRows
from tests.unit.verification.doubles import KAFKA, entry

pytestmark = pytest.mark.unit

NAME = TableName("t", "p")


def ledger(position: dict[Partition, int], *later: LedgerEntry) -> Ledger:
    since = entry(5, position=position, topics={topic: "id" for topic, _ in position})
    return Ledger(9, (since, *later), since=since)


def written(folder: Path, *places: tuple[str | None, int | None, int | None]) -> LakeRows:
    kafka = [dict(zip(("topic", "partition", "offset"), each, strict=True)) for each in places]
    for each in kafka:  # one file each
        table = pa.table([pa.array([{**each, "timestamp": None}], KAFKA)], names=["_kafka"])
        write_deltalake(NAME.path(folder), table, mode="append")
    return LakeRows(Lake.in_folder(folder), NAME)


def read(rows: LakeRows, known: Ledger) -> set[tuple[str | None, int | None, int | None]]:
    batches = rows.batches(["_kafka"], beginning(known, "_kafka.offset"))
    found = (each["_kafka"] for batch in batches for each in batch.to_pylist())
    return {(each["topic"], each["partition"], each["offset"]) for each in found}


def test_rows_from_the_position_on_are_read_and_those_that_no_entry_knows(tmp_path: Path) -> None:
    older = [("a", 0, 4), ("a", 1, 99), ("b", 0, 6)]
    wanted = [("a", 0, 5), ("a", 1, 100), ("b", 0, 7), ("a", 2, 0), ("c", 0, 0)]
    unknown = [(None, 0, 1), ("a", None, 1), ("a", 0, None)]
    rows = written(tmp_path, *older, *wanted, *unknown, ("of others", 0, 3))
    known = ledger({("a", 0): 5, ("a", 1): 100, ("b", 0): 7}, entry(6, topics={"c": "id"}))
    assert read(rows, known) == {*wanted, *unknown}


def test_of_many_partitions_the_smallest_position_decides(tmp_path: Path) -> None:
    rows = written(tmp_path, ("a", 0, 3), ("a", 7, 4), ("a", 39, 3))
    assert read(rows, ledger({("a", number): 4 + number for number in range(40)})) == {("a", 7, 4)}
    gap = ledger({("a", 0): 4, ("a", 2): 5})
    assert read(rows, gap) == {("a", 7, 4)}


def test_without_a_beginning_all_is_read(tmp_path: Path) -> None:
    assert beginning(Ledger(9, (entry(5),)), "_kafka.offset") is None


def test_files_whose_offsets_are_all_older_are_not_opened(tmp_path: Path) -> None:
    rows = written(tmp_path, ("a", 0, 1), ("a", 1, 2), ("a", 0, 9))
    for file in NAME.path(tmp_path).glob("*.parquet"):
        if b"\x09\x00\x00\x00\x00\x00\x00\x00" not in file.read_bytes():
            file.unlink()
    assert read(rows, ledger({("a", 0): 5, ("a", 1): 7})) == {("a", 0, 9)}
