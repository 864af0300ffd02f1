"""The append: one commit with the entry, quarantine ahead of it, no batch half done."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from rivermouth.write.append import Append
from rivermouth.write.commit import Target, record

from rivermouth.config import Pipeline
from rivermouth.formats.json import decoder
from rivermouth.protocol.commits import Outcome, app_id, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.spark.address import Address
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.quarantine import QuarantineTable
from rivermouth.warehouse.target import create_target
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def a_pipeline() -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "columns": "n BIGINT",
            "target": {"table": "bronze.numbers"},
        }
    )


def writer(bench: Bench) -> tuple[Append, FolderLog]:
    path = bench.folder / "numbers"
    address = Address(path=str(path))
    create_target(bench.spark, a_pipeline(), address)
    quarantine = QuarantineTable(Address(path=str(bench.folder / "numbers_quarantine")))
    append = Append(Target(address, ("n",)), quarantine, files=2, persist=True)
    return append, FolderLog(path)


def write(bench: Bench, append: Append, rows: list[RawRow], sequence: int = 1) -> None:
    entry = bench.entry(sequence, rows, Position())
    append.write(decoder(a_pipeline())(bench.raw(rows)), entry)


def numbers(bench: Bench) -> list[int]:
    rows = DeltaTable(str(bench.folder / "numbers")).to_pyarrow_table().to_pylist()
    return sorted(row["n"] for row in rows)


def test_a_clean_batch_is_one_commit_with_txn_and_entry(bench: Bench) -> None:
    append, log = writer(bench)
    write(bench, append, [(None, b'{"n": %d}' % n, 0, n) for n in range(5)])

    [created, written] = log.commits()
    assert created.operation == "CREATE TABLE"
    assert written.txns == {app_id("p"): 1}
    entry = entry_of(written, "p")
    assert entry is not None
    assert entry.rows is None, "its files will tell"
    assert numbers(bench) == [0, 1, 2, 3, 4]
    assert not (bench.folder / "numbers_quarantine").exists()


def test_a_batch_with_bad_records_is_split_and_knows_its_counts(bench: Bench) -> None:
    append, log = writer(bench)
    write(bench, append, [(None, b'{"n": 1}', 0, 0), (b"k", b"bad", 0, 1), (None, b"{}", 1, 0)])

    entry = entry_of([*log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(1, 1), RowCounts(1, 0))
    held = DeltaTable(str(bench.folder / "numbers_quarantine")).to_pyarrow_table().to_pylist()
    assert [(row["commit"], row["key"], row["value"], row["code"]) for row in held] == [
        (entry.commit, b"k", b"bad", "RM603")
    ]


def test_a_stale_sequence_appends_nothing(bench: Bench) -> None:
    append, log = writer(bench)
    write(bench, append, [(None, b'{"n": 1}', 0, 0)])
    rows: list[RawRow] = [(None, b'{"n": 2}', 0, 0), (None, b'{"n": 3}', 0, 1)]
    late = bench.entry(1, rows, Position())

    append.write(decoder(a_pipeline())(bench.raw(rows)), late)

    assert numbers(bench) == [1]
    assert classify(late, log.commits()) is Outcome.SUPERSEDED


def test_an_entry_without_rows_is_a_commit_too(bench: Bench) -> None:
    _, log = writer(bench)
    entry = bench.entry(1, [(None, None, 0, 6)], Position())

    record(bench.spark, entry, Address(path=str(bench.folder / "numbers")))

    assert classify(entry, log.commits()) is Outcome.COMMITTED
    assert numbers(bench) == []
